"""The command, in a process of its own."""

import json
import os
import signal
import subprocess
import sys

import pytest
from fake_upstream import FakeUpstream
from live import RawUpstream, ask, status, until
from sessions import opening, request, step

from cg.gateway.serve.thread_server import serve_in_thread
from cg.gateway.settings import Settings

HEADERS = (b"x-api-key: key", b"anthropic-version: 2023-06-01", b"content-type: application/json")
PROXY = [sys.executable, "-m", "cg.gateway.cli"]
CHILD = (
    "import os, urllib.request as u;"
    "o = u.build_opener(u.ProxyHandler({}));"
    "print(o.open(os.environ['ANTHROPIC_BASE_URL'] + '/v1/models').read().decode());"
    "print(os.environ['NO_PROXY']); raise SystemExit(7)"
)


def environment(tmp_path, **more):
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path), **more}


def run(tmp_path, *arguments, **more):
    return subprocess.run(
        [*PROXY, *arguments],
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_command_runs_behind_the_gateway_and_its_exit_code_is_ours(tmp_path):
    """It is told where to send requests, and that no proxy stands between."""
    with RawUpstream() as upstream:
        done = run(
            tmp_path, "run", "--upstream", upstream.url, "--", sys.executable, "-c", CHILD, NO_PROXY="corp.example"
        )
        assert done.stdout.split() == ["ok", "corp.example,127.0.0.1"], done.stderr
        assert done.returncode == 7
        assert upstream.requests[0].line == b"GET /v1/models HTTP/1.1"


def test_a_gateway_can_stand_before_another(tmp_path):
    """What the command would have used is where it goes on."""
    with RawUpstream() as upstream:
        done = run(tmp_path, "run", sys.executable, "-c", CHILD, ANTHROPIC_BASE_URL=upstream.url + "/corp")
        assert done.returncode == 7, done.stderr
        assert upstream.requests[0].line == b"GET /corp/v1/models HTTP/1.1"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run"], 2, "needs a command"),
        (["run", "--", "/does/not/exist"], 127, "not found"),
        (["run", "--", "/"], 126, "cannot be run"),
        (["serve", "--upstream", "nope"], 2, "upstream"),
        (["serve", "--listen", "0.0.0.0:0"], 2, "token"),
        (["serve", "--config", "/does/not/exist"], 2, "cannot be read"),
        (["serve", "--preset", "nope"], 2, "preset"),
    ],
)
def test_what_cannot_be_done_is_said_and_has_a_code(tmp_path, arguments, code, said):
    """One line on stderr."""
    done = run(tmp_path, *arguments, ANTHROPIC_BASE_URL="")
    assert done.returncode == code and said in done.stderr and done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(tmp_path, number):
    """And says where; a stop that was asked for is no failure."""
    with RawUpstream() as upstream:
        serving = subprocess.Popen(
            [*PROXY, "serve", "--listen", "127.0.0.1:0", "--upstream", upstream.url],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        with serving:
            try:
                line = serving.stdout.readline()
                assert "listening on http://127.0.0.1:" in line
                port = int(line.partition("127.0.0.1:")[2].partition(",")[0])
                assert ask(port, b"GET /x").body == b"ok"
                serving.send_signal(number)
                assert serving.wait(60) == 0
            finally:
                serving.kill()


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_command_that_is_killed_says_so_by_its_code(tmp_path):
    """As a shell would."""
    done = run(tmp_path, "run", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == 137


def test_help_loads_no_server():
    """Words come at once."""
    code = (
        "import sys; from cg.gateway.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('uvicorn', 'asyncio', 'numpy', 'httpcore2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_running_gateway_is_paused_and_resumed_from_another_process(tmp_path):
    """`pause` names the state's default, `/stats` shows it, a request ends for that reason; `resume` takes it back."""
    state = tmp_path / "cg" / "gateway.db"
    with FakeUpstream([{"text": "Hello."}] * 3) as upstream:
        settings = Settings(("127.0.0.1", 0), upstream.base_url, state=state)
        with serve_in_thread(settings) as url:
            port = int(url.rpartition(":")[2])

            def stats():
                return json.loads(ask(port, b"GET /stats").body)

            def turns(n):
                history = step(1) if n else []
                ask(port, b"POST /v1/messages", *HEADERS, body=request(opening() + history, stream=False))
                assert until(lambda: stats()["turns"] == n + 1)

            for arguments, switch in ((["pause"], "paused"), (["pause", "--all"], "paused_all"), (["resume"], "on")):
                done = run(tmp_path, *arguments)
                assert done.returncode == 0 and str(state) in done.stdout, done.stderr
                assert stats()["switch"] == switch
                if switch == "paused":
                    turns(0)
            turns(1)
            assert stats()["reasons"]["paused"] == 1 and stats()["turns"] == 2


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_token_in_a_file_opens_the_route_that_shows_content(tmp_path):
    """Without it /expand gives nothing away; with it an id that is none is merely not found."""
    file = tmp_path / "token"
    file.write_text("a-token-of-twenty-one\n")
    file.chmod(0o600)
    serving = subprocess.Popen(
        [*PROXY, "serve", "--listen", "127.0.0.1:0", "--token-file", str(file)],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    with serving:
        try:
            port = int(serving.stdout.readline().partition("127.0.0.1:")[2].partition(",")[0])
            target = b"GET /expand?id=0123456789abcdef&session=s"
            assert status(ask(port, target)) == 401
            assert status(ask(port, target, b"x-cg-token: a-token-of-twenty-one")) == 404
        finally:
            serving.kill()


def test_a_state_that_is_not_there_is_not_made_to_be_paused(tmp_path):
    """Exit 2 with its name: else a typing error would switch off nothing, and say that it did."""
    done = run(tmp_path, "pause", "--state", str(tmp_path / "other.db"))
    assert done.returncode == 2 and "other.db" in done.stderr and not (tmp_path / "other.db").exists()


def test_the_settings_in_force_are_shown_and_the_token_is_not(tmp_path):
    """From file, environment and flags, in the file's own units."""
    config = tmp_path / "cg.toml"
    config.write_text('[proxy]\nmax_body_mb = 7\n[sweep]\npreset = "cold"\n', "utf-8")
    token = "not-to-be-shown-0123456789abcdef"
    done = run(tmp_path, "config", "--config", str(config), "--listen", "[::1]:7", CG_PROXY_TOKEN=token)
    shown = json.loads(done.stdout)
    assert shown["proxy"]["max_body_mb"] == 7 and shown["proxy"]["listen"] == "[::1]:7"
    assert shown["sweep"]["keep_newest"] == 10 and shown["sweep"]["judge"] == "recency"
    assert token not in done.stdout and shown["proxy"]["token_file"] == "(set)"
    assert shown["proxy"]["state"] == str(tmp_path / "cg" / "gateway.db")
