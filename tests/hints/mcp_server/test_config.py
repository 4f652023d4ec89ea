"""The configuration of `cg-hints mcp`, its permissions, and the command line around it."""

import json
import subprocess
import sys
from typing import Any

import pytest

from cg.hints.mcp_server.config import Permissions, parse_config
from cg.hints.mcp_server.tools import ToolIndex, admitted, found_tool, harmless_json
from cg.hints.refusal import Code, Refusal

GOOD = {"command": "c"}


def test_the_shape_of_clients_is_read_and_their_other_keys_are_ignored() -> None:
    body = {
        "theme": "dark",
        "mcpServers": {
            "a": {"command": "c", "args": ["1"], "env": {"K": "v"}, "type": "stdio", "autoApprove": []},
            "b": {"url": "https://x/mcp", "headers": {"H": "v"}},
            "c": {"command": "c", "disabled": True},
        },
        "tools": {"allow": ["a/*"], "deny": ["*/x"]},
    }
    config = parse_config(json.dumps(body).encode())
    assert [(s.name, s.command, s.args, s.env, s.url, s.headers) for s in config.servers] == [
        ("a", "c", ("1",), (("K", "v"),), "", ()),
        ("b", "", (), (), "https://x/mcp", (("H", "v"),)),
    ]
    assert config.permissions == Permissions((("a/*",),), ("*/x",))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"mcpServers": {}}',
        b'{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}',
        *(
            json.dumps({"mcpServers": servers, "tools": tools}).encode()
            for servers, tools in (
                ({"a/b": GOOD}, {}),
                ({"a\x1b": GOOD}, {}),
                ({"a": {}}, {}),
                ({"a": {"command": "c", "url": "u"}}, {}),
                ({"a": {"command": "c", "args": "x"}}, {}),
                ({"a": {"command": "c", "env": {"K": 1}}}, {}),
                ({"a": {"url": "u", "type": "sse"}}, {}),
                ({"a": GOOD}, {"denied": ["x"]}),
                ({"a": GOOD}, {"deny": "x"}),
                ({"a": GOOD}, None),
            )
        ),
    ],
)
def test_a_wrong_configuration_is_refused_and_never_read_as_permission(body: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_config(body)
    assert caught.value.code is Code.USAGE and str(caught.value).isprintable()


def test_a_command_line_can_only_take_away() -> None:
    given = Permissions((("a/*",),), ("a/no",))
    assert [given.permit(name) for name in ("a/x", "b/x", "a/no", "a/NO", "A/x")] == [True, False, False, False, False]
    narrowed = given.narrowed(["*/x", "b/*"], ["*/secret"])
    assert [narrowed.permit(name) for name in ("a/x", "b/x", "a/y", "a/no")] == [True, False, False, False]
    assert given.narrowed([], []) == given
    assert not Permissions(((),)).permit("a/x")  # an empty list allows nothing


def test_tools_left_out_for_want_of_permission_leave_no_trace() -> None:
    tools = [found_tool("s", name, None, None, {"type": "object"}) for name in ("a", "a", "no", "no", "b c")]
    assert admitted(tools, lambda name: name == "s/no")[0][0].id == "s/no"
    taken, note = admitted(tools, lambda name: "no" not in name)
    assert [tool.name for tool in taken] == ["a"] and "1 with a name" in note and "1 whose name" in note
    assert admitted(tools, lambda name: False) == ((), "")


def test_past_the_limit_of_documents_tools_are_left_out_and_counted() -> None:
    index = ToolIndex(found_tool("s", f"t{n}", None, None, {}) for n in range(4100))
    assert (len(index.of_id), index.left_out) == (4096, 4)
    assert ToolIndex(()).search("x", 5) == []


def test_every_character_of_an_answer_can_be_seen_and_read_back() -> None:
    value = {"text": "naïve 工具 \x00\x1b\u202e\u2028\ud800\U000e0041\U000e0100\ufe0f\u00a0"}
    text = harmless_json(value)
    assert text.isprintable() and "naïve 工具" in text and json.loads(text) == value
    assert "\ufe0f" not in text and "\U000e0100" not in text


def test_the_first_word_mcp_is_the_command_and_later_it_is_a_file(cg_hints: Any, tmp_path: Any) -> None:
    for arguments in (("mcp",), ("mcp", "--config", str(tmp_path / "none")), ("mcp", "--what")):
        done = cg_hints(*arguments)
        assert (done.returncode, done.stdout) == (2, b"") and json.loads(done.stderr)["error"]["code"] == "usage"
    assert b"--deny" in cg_hints("mcp", "--help").stdout
    done = cg_hints("--query", "x", "mcp")
    assert done.returncode == 2 and b"'mcp'" not in done.stdout and b"config" not in done.stderr


def test_the_command_without_mcp_loads_nothing_of_it() -> None:
    program = (
        "import sys, io, cg.hints.cli, cg.hints.mcp_server.config, cg.hints.mcp_server.command\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'{}'))\n"
        "cg.hints.cli.main([])\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'anyio', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_without_the_sdk_it_says_what_to_install(tmp_path: Any) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"mcpServers": {"a": GOOD}}))
    program = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = sys.modules['anyio'] = None\n"
        "import cg.hints.cli; sys.exit(cg.hints.cli.main(['mcp', '--config', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(config)], capture_output=True, text=True)
    assert done.returncode == 2 and "cg-context[mcp]" in done.stderr
