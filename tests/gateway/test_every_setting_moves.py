"""Each setting of the gateway is set to another value by a test that goes through a socket or a process, and would fail
without it. A setting that no such test moves is deleted, or gets one."""

import ast
from pathlib import Path

import pytest

from cg.gateway.settings import KEYS

TESTS = Path(__file__).parents[1]

# key: the test, and the words in its source that set the key
MOVED_BY: dict[str, tuple[str, str]] = {
    "listen": ("gateway/test_cli.py::test_it_serves_until_a_signal", '"--listen"'),
    "upstream": ("gateway/test_cli.py::test_it_serves_until_a_signal", '"--upstream"'),
    "state": ("gateway/test_cli.py::test_a_running_gateway_is_paused_and_resumed_from_another_process", "state=state"),
    "token_file": ("gateway/test_cli.py::test_a_token_in_a_file_opens_the_route_that_shows_content", "--token-file"),
    "observe": ("gateway/test_build.py::test_it_serves_messages_figures_and_everything_else", "observe=observe"),
    "budget_ms": (
        "gateway/messages/test_handler.py::test_rule_10_with_nothing_known_the_clients_own_bytes_leave",
        "budget_ms=200",
    ),
    "max_body_mb": ("gateway/http/test_app.py::test_a_body_past_the_limit_is_refused_unread", "max_body_bytes=1000"),
    "max_buffered_mb": (
        "gateway/http/test_app.py::test_memory_for_bodies_is_bounded_over_all_requests",
        "max_buffered_bytes=1000",
    ),
    "max_requests": ("gateway/http/test_app.py::test_requests_at_one_time_are_bounded", "max_requests=2"),
    "max_connections": ("gateway/serve/test_server.py::test_connections_are_bounded", "max_connections=2"),
    "client_idle_s": (
        "gateway/http/test_app.py::test_a_client_that_takes_nothing_slows_the_upstream_and_is_let_go",
        "client_idle_s=1.0",
    ),
    "upstream_idle_s": ("gateway/http/test_app.py::test_an_upstream_that_says_nothing_is_a_504", "upstream_idle_s=0.2"),
    "connect_timeout_s": (
        "gateway/test_build.py::test_an_upstream_that_takes_a_connection_and_says_nothing_is_given_up",
        "connect_timeout_s=0.2",
    ),
    "stop_timeout_s": ("gateway/serve/test_server.py::test_a_stop_does_not_wait_for_ever", "stop_timeout_s=1"),
}


def test_the_table_holds_every_key_once() -> None:
    """And no other. A new key comes with a test that it changes."""
    assert sorted(MOVED_BY) == sorted(key.name for key in KEYS)


@pytest.mark.parametrize("key", MOVED_BY)
def test_the_named_test_is_there_and_sets_the_key(key: str) -> None:
    """A test that was renamed, or no longer sets it, is missed here."""
    place, words = MOVED_BY[key]
    path, _, name = place.partition("::")
    source = (TESTS / path).read_text("utf-8")
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert functions, f"{place} is not there"
    assert words in (ast.get_source_segment(source, functions[0]) or "")
