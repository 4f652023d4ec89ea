"""A valid request to start from, and the command run as a person runs it."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def valid() -> dict[str, Any]:
    """A fresh request of three documents and one hint, as a dictionary that a test may change."""
    return {
        "snapshot_id": "s1",
        "query": "card payment",
        "documents": [
            {"id": "search", "text": "finds products"},
            {"id": "payments", "text": "a card payment is charged"},
            {"id": "cache", "text": "keeps pages"},
        ],
        "hints": {"snapshot_id": "s1", "query": "card payment", "ids": ["cache"]},
    }


@pytest.fixture
def cg_hints() -> Run:
    """Runs `cg-hints` with arguments and standard input (bytes, or a value that is sent as JSON)."""

    def run(*arguments: str, stdin: Any = b"", timeout: float = 60) -> "subprocess.CompletedProcess[bytes]":
        body = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        command = [sys.executable, "-m", "cg.hints.cli", *arguments]
        return subprocess.run(command, input=body, capture_output=True, timeout=timeout)

    return run
