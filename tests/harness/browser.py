"""A headless Chromium driven over its debugging pipe: no driver package, no port, no network."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LIMIT_S = 30.0


def binary() -> str | None:
    """A Chromium of this machine, if there is one; `CG_CHROMIUM` names another."""
    return os.environ.get("CG_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of one browser. Use as a context manager."""

    def __init__(self, *, width: int = 1200, height: int = 900) -> None:
        self._size = (width, height)
        self._id = 0
        self._rest = b""
        self._session: str | None = None
        self.errors: list[str] = []  # exceptions and console errors of the page

    def __enter__(self) -> "Browser":
        path = binary()
        assert path is not None
        self._profile = tempfile.mkdtemp(prefix="cg-browser-")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]

        def wire() -> None:  # the browser reads descriptor 3 and writes descriptor 4
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [
                path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--window-size={self._size[0]},{self._size[1]}",
                f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=wire,
            pass_fds=(3, 4),
        )
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self._in, self._out = ours_in, ours_out
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command's result; raises RuntimeError with the browser's own words."""
        self._id += 1
        message: dict[str, Any] = {"id": self._id, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return answer.get("result", {})

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(message["params"]["exceptionDetails"].get("text")))
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            entry = message["params"]["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}".strip())
        return message

    def open(self, url: str, ready: str = "document.readyState === 'complete'") -> None:
        """Go to a page and wait until a condition holds there, and not on the page before."""
        self.run("window.isBefore = true")
        self.call("Page.navigate", url=url)
        self.wait_for(f"!window.isBefore && document.body && ({ready})")

    def wait_for(self, condition: str, limit_s: float = LIMIT_S) -> None:
        """Wait until a JavaScript condition holds."""
        deadline = time.monotonic() + limit_s
        while not self._holds(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {condition}; errors: {self.errors}")
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.run(f"Boolean({condition})"))
        except RuntimeError as error:
            if "context" in str(error) or "navigated" in str(error):  # between two pages there is none to ask
                return False
            raise

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:500])
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """One key, down and up."""
        shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def prefer(self, scheme: str) -> None:
        """The light or the dark colour scheme."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        import base64

        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))
