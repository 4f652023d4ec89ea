"""A check made by a program: the candidate on its standard input, the answer in its exit status."""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress

from cg.hints.refusal import Code, Refusal
from cg.hints.verify import Answer, Failure, Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    Process = subprocess.Popen[bytes]

_ANSWERS = {0: Answer.FOUND, 1: Answer.NOT_THIS}  # any other status, a signal included, is a failed check
_TIMEOUT, _LOST = "timeout", "exit status lost"  # instead of a status
_SHORTEST_S, _LONGEST_S = 0.0005, 0.05  # between two looks at a process, doubling: quick answers stay quick


class CommandCheck:
    """Runs `command`, split by shell rules but never given to a shell, once a candidate.

    Its output is thrown away: the streams of the caller carry answers only. What it starts shares its process group,
    and the whole group is killed when it has answered, when the time is up, and when the run is interrupted.
    """

    def __init__(self, command: str, timeout_s: float) -> None:
        try:
            words = shlex.split(command)
        except ValueError as fault:
            raise Refusal(Code.USAGE, f"--verify: {fault}") from None
        program = shutil.which(words[0]) if words else None
        if program is None:
            raise Refusal(Code.USAGE, "--verify: the command names no program that can be run")
        self._arguments = [program, *words[1:]]
        self._timeout_s = timeout_s

    def __call__(self, subject: Subject) -> Answer | Failure:
        body = json.dumps(subject, ensure_ascii=False).encode("utf-8") + b"\n"
        try:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError):  # ValueError: a NUL in an argument
            return Failure("not started")
        try:
            status = _status(process, body, self._timeout_s)
        finally:
            _end(process)
        if isinstance(status, str):
            return Failure(status)
        return _ANSWERS.get(status) or Failure(f"exit status {status}" if status >= 0 else f"signal {-status}")


def _status(process: "Process", body: bytes, timeout_s: float) -> int | str:
    """The exit status, negative for a signal, of a process that is given `body`, or why there is none.

    Where there are process groups it ends when the process does, even if something that it left behind still holds its
    input open.
    """
    if os.name != "posix":
        with suppress(subprocess.TimeoutExpired):
            process.communicate(body, timeout=timeout_s)
        return _TIMEOUT if process.returncode is None else process.returncode
    assert process.stdin is not None
    end, pause_s, left, pipe = time.monotonic() + timeout_s, _SHORTEST_S, memoryview(body), process.stdin.fileno()
    os.set_blocking(pipe, False)
    while True:
        if left:
            with suppress(BlockingIOError):
                try:
                    left = left[os.write(pipe, left) :]
                    pause_s = _SHORTEST_S
                except BrokenPipeError:  # it answers without reading on
                    left = left[:0]
            if not left:
                process.stdin.close()
        is_over, status = _look(process)
        remaining_s = end - time.monotonic()
        if is_over:
            return _LOST if status is None else status
        if remaining_s <= 0:
            return _TIMEOUT
        select.select([], [pipe] if left else [], [], min(pause_s, remaining_s))
        pause_s = min(2 * pause_s, _LONGEST_S)


def _look(process: "Process") -> tuple[bool, int | None]:
    """(has it ended, its status); it is not reaped where that can be told apart, so that its id stays its own."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None, process.returncode
    try:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # signals of ended children are ignored here: the system forgot the status
        return True, None
    if found is None:
        return False, None
    return True, found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _end(process: "Process") -> None:
    """End the process, if it has not ended, and all that it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):  # nobody is left; or, on macOS, one that ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    process.wait()
