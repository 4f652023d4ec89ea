"""Structured logs: parseable, and never a byte that a client, a model or an upstream wrote."""

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from figures_sample import SECRET

import cg
from cg.gateway.events import Spend
from cg.gateway.telemetry import json_logs as logs
from cg.gateway.telemetry.json_logs import JsonLines, harmless, log_event
from cg.gateway.telemetry.metric_families import Tier


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """A stream under the whole process's logging, which is put back afterwards."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    states = {
        name: (list(logger.handlers), logger.propagate, logger.level)
        for name, logger in logging.Logger.manager.loggerDict.items()
        if isinstance(logger, logging.Logger)
    }
    stream = io.StringIO()
    logs.configure("debug", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    for name, (handlers, propagate, own) in states.items():
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(own)


def rows(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_line_of_json(lines: io.StringIO) -> None:
    """Whatever stands in it."""
    log_event(logging.getLogger("cg.gateway.turn"), "turn", reason="removed", removed=3, net_usd=None)
    (row,) = rows(lines)
    assert row.pop("at").endswith("Z")
    assert row == {
        "level": "info",
        "logger": "cg.gateway.turn",
        "event": "turn",
        "reason": "removed",
        "removed": 3,
        "net_usd": None,
    }


@pytest.mark.parametrize(
    "content",
    [
        SECRET,
        SECRET + " and more",
        f"Bearer {SECRET}",
        f"{SECRET}\nforged: line",
        "x" * 65,
        SECRET.encode(),
        [SECRET],
        {SECRET: 1},
    ],
)
def test_content_in_a_field_or_an_argument_is_left_out(lines: io.StringIO, content: object) -> None:
    """Its type and size stay, for whoever looks for the mistake."""
    log = logging.getLogger("cg.gateway.turn")
    log_event(log, "turn", reason=content)
    log.error("failed: %s", content)
    assert SECRET not in lines.getvalue()
    assert "x" * 65 not in lines.getvalue()
    assert all("forged" not in line for line in lines.getvalue().splitlines())
    assert rows(lines)[0]["reason"].startswith(f"<{type(content).__name__} of ")


def test_other_libraries_tell_only_where_they_stand(lines: io.StringIO) -> None:
    """They put URLs and the text of errors into their messages."""
    logging.getLogger("httpcore").warning(f"GET https://host/?key={SECRET}")
    logging.getLogger("asyncio").error("Task failed: %s", SECRET)
    assert SECRET not in lines.getvalue()
    for row in rows(lines):
        assert row["event"].startswith("test_json_logs.py:")


def test_an_exceptions_message_is_left_out_and_its_places_stay(lines: io.StringIO) -> None:
    """The message of an exception often quotes what it was about."""

    def fail() -> None:
        raise ValueError(f"cannot read {SECRET}")

    try:
        fail()
    except ValueError:
        logging.getLogger("cg.gateway").exception("fault")
        logging.getLogger("uvicorn.error").exception("boom")
    assert SECRET not in lines.getvalue()
    for row in rows(lines):
        assert row["exception"] == "ValueError"
        assert len(row["places"]) == 2
        assert all(place.startswith("test_json_logs.py:") for place in row["places"])


def test_handlers_that_libraries_set_up_for_themselves_are_taken_away(lines: io.StringIO) -> None:
    """They would write the same records whole."""
    own = io.StringIO()
    logger = logging.getLogger("uvicorn.error.test")
    logger.addHandler(logging.StreamHandler(own))
    logger.propagate = False
    logs.configure("info", lines)
    logger.warning("x %s", SECRET)
    assert own.getvalue() == ""
    assert len(rows(lines)) == 1


def test_an_unknown_level_is_refused() -> None:
    """The message names those that are known."""
    with pytest.raises(ValueError, match="'loud'; it must be debug, info"):
        logs.configure("loud")


@pytest.mark.parametrize(
    "value", [None, True, 3, 1.5, "removed", "sweep_applied", "ValueError", Spend.ASK, Tier.WRITE_5M]
)
def test_numbers_plain_words_and_members_of_closed_sets_stand_as_they_are(value: object) -> None:
    """They say nothing of anybody's content."""
    assert harmless(value) == value


def test_a_number_format_that_fails_falls_back_to_the_template() -> None:
    """A wrong argument is no reason to lose a record."""
    record = logging.LogRecord("cg.x", logging.INFO, "f.py", 1, "%d bytes", (SECRET,), None)
    assert json.loads(JsonLines().format(record))["event"] == "%d bytes"


def test_messages_of_ours_are_constants() -> None:
    """A message that is put together in code could hold anything: each is a plain text, its values are arguments."""
    for path in sorted(Path(cg.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_log(node.func):
                assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno}"


def _is_log(function: ast.Attribute) -> bool:
    names = {"debug", "info", "warning", "error", "exception", "critical"}
    return function.attr in names and isinstance(function.value, ast.Name) and "log" in function.value.id
