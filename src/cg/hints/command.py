"""A check made by a program: the candidate on its standard input, the answer in its exit status."""

import json
import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress

from cg.hints.refusal import Code, Refusal
from cg.hints.verify import Answer, Subject

_ANSWERS = {0: Answer.FOUND, 1: Answer.NOT_THIS}  # any other status, a signal included, is a failed check


class CommandCheck:
    """Runs `command`, split by shell rules but never given to a shell, once a candidate.

    Its output is thrown away: the streams of the caller carry answers only. What it starts shares its process group,
    and the whole group is killed when the time is up or the run is interrupted.
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

    def __call__(self, subject: Subject) -> Answer:
        body = json.dumps(subject, ensure_ascii=False).encode("utf-8") + b"\n"
        try:
            process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError):  # ValueError: a NUL in an argument
            return Answer.FAILED
        try:
            process.communicate(body, timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            return Answer.FAILED
        finally:
            if process.returncode is None:
                _kill_group(process)
        return _ANSWERS.get(process.returncode, Answer.FAILED)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process that has not been waited for, so that its id is still its own, and all that it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    process.wait()
