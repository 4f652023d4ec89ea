"""`cg-hints mcp` as a client sees it: the SDK's own client over stdio, before servers that behave and that do not."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp is not installed: the MCP server is an extra")

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

HERE = Path(__file__).parent
SUBJECTS = {
    "calendar": "meeting,holiday,reminder,birthday,room,schedule",
    "mail": "letter,draft,attachment,mailbox,signature,newsletter",
    "billing": "invoice,refund,subscription,receipt,coupon,quote",
    "fleet": "truck,driver,route,fuel,tyre,trailer",
    "hospital": "patient,prescription,ward,surgery,nurse,vaccine",
}


def raw(behaviour: str, *more: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "raw_server.py"), behaviour, *more]}


class Found:
    """One session with the server, and short words for what tests ask of it."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def raw_search(self, query: str, limit: int = 5) -> str:
        answer = await self.session.call_tool("search_tools", {"query": query, "limit": limit})
        assert not answer.is_error
        return str(answer.content[0].text)  # type: ignore[union-attr]

    async def search(self, query: str, limit: int = 5) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(await self.raw_search(query, limit))
        return answer

    async def names(self, query: str, limit: int = 5) -> list[str]:
        return [tool["name"] for tool in (await self.search(query, limit))["tools"]]

    async def call(self, name: str, **arguments: Any) -> Any:
        answer = await self.session.call_tool("call_tool", {"name": name, "arguments": arguments})
        assert not answer.is_error, answer
        return json.loads(answer.content[0].text)  # type: ignore[union-attr]

    async def error(self, name: str, **arguments: Any) -> str:
        answer = await self.session.call_tool("call_tool", {"name": name, "arguments": arguments})
        assert answer.is_error
        text: str = json.loads(answer.content[0].text)["error"]  # type: ignore[union-attr]
        return text


Body = Callable[[Found], Awaitable[None]]
Serve = Callable[..., None]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Runs `bodies`, each with a session of its own at the same time, before the servers given."""

    def run(servers: dict[str, Any], *bodies: Body, flags: tuple[str, ...] = (), **more: Any) -> None:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"mcpServers": servers, **more}))
        arguments = ["-m", "cg.hints.cli", "mcp", "--config", str(config), *flags]
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}

        async def one(body: Body) -> None:
            command = StdioServerParameters(command=sys.executable, args=arguments, env=path)
            async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                await body(Found(session))

        async def main() -> None:
            with anyio.fail_after(50):
                async with anyio.create_task_group() as group:
                    for body in bodies:
                        group.start_soon(one, body)

        anyio.run(main)

    return run


def test_the_right_tool_among_300_of_five_servers_is_found_and_called(serve: Serve) -> None:
    """And by two sessions at once, whose answers do not mix."""
    servers = {
        name: {"command": sys.executable, "args": [str(HERE / "sdk_server.py"), name, things]}
        for name, things in SUBJECTS.items()
    }

    def session(number: int) -> Body:
        async def body(found: Found) -> None:
            assert [tool.name for tool in (await found.session.list_tools()).tools] == ["search_tools", "call_tool"]
            for query, name in (
                ("cancel an invoice", "billing/cancel_invoice"),
                ("renaming the drivers", "fleet/rename_driver"),
                ("approve prescriptions", "hospital/approve_prescription"),
                ("export mailbox", "mail/export_mailbox"),
                ("share the holiday", "calendar/share_holiday"),
            ):
                assert (await found.search(query))["tools"][0]["name"] == name
                server, tool = name.split("/")
                assert await found.call(name, which=str(number)) == [server, tool, {"which": str(number)}]
            assert len(await found.names("a", 50)) == 50
            direct = await found.session.call_tool("fleet/copy_fuel", {"which": "7"})  # by its own name, unlisted
            assert not direct.is_error

        return body

    serve(servers, session(1), session(2), flags=("--start-timeout", "40"))


def test_a_denied_tool_is_neither_found_nor_callable(serve: Serve, tmp_path: Path) -> None:
    """Nor does an answer tell it apart from a tool that does not exist."""
    called = tmp_path / "called"

    async def body(found: Found) -> None:
        assert await found.names("deletes everything", 50) == ["a/echo"]
        missing = await found.error("a/no_such_tool")
        for name in ("a/delete_all", "a/end", "b/echo", "a/DELETE_ALL", "a/ echo", "delete_all"):
            assert await found.error(name) == missing
            answer = await found.session.call_tool(name, {})
            assert answer.is_error
        assert not called.exists()
        await found.call("a/echo")
        assert called.read_text().count("\n") == 1

    serve(
        {"a": raw("plain", str(called)), "b": raw("plain", str(called))},
        body,
        flags=("--deny", "*/END", "--allow", "a/*"),
        tools={"deny": ["*delete*"]},
    )


def test_hostile_descriptions_are_shown_as_data(serve: Serve) -> None:
    """Cut, in characters that can be seen, and searched like any others."""

    async def body(found: Found) -> None:
        text = await found.raw_search("ring the bell")
        assert text.isprintable() and "\ufe0f" not in text and len(text) < 8_000
        assert json.loads(text)["tools"], text
        ring = json.loads(text)["tools"][0]
        assert ring["name"] == "h/ring" and ring["description"].startswith("ring the bell\u202e\x1b[2J\x00")
        assert ring["input_schema"] is None and "too long" in ring["note"]
        assert await found.call("h/ring", a=1) == {"name": "ring", "arguments": {"a": 1}}

    serve({"h": raw("hostile")}, body)


def test_servers_that_die_hang_or_talk_nonsense_do_not_hold_the_others(serve: Serve) -> None:
    servers = {
        name: raw(name) for name in ("dead", "hangs", "plain", "pages", "noise", "malformed", "refuses", "wrong_list")
    }
    servers["missing"] = {"command": "/no/such/program"}
    servers["nowhere"] = {"url": "http://127.0.0.1:9/mcp"}

    async def body(found: Found) -> None:
        answer = await found.search("says it again", 50)
        assert set(answer["servers_with_errors"]) == {"dead", "hangs", "missing", "nowhere", "wrong_list"}
        assert "did not start within 3 s" in answer["servers_with_errors"]["hangs"]
        assert {"plain/echo", "pages/page_100", "noise/echo"} <= {*await found.names("echo page 100", 50)}
        for name in ("dead", "hangs", "missing", "nowhere"):
            assert (await found.error(f"{name}/echo")).startswith(f"server {name}: ")
        assert "server malformed: " in await found.error("malformed/echo")
        assert 100 < len(await found.error("refuses/echo")) < 400
        assert await found.call("plain/echo", x="y") == {"name": "echo", "arguments": {"x": "y"}}

    serve(servers, body, flags=("--start-timeout", "3"))


def test_a_server_at_a_url_is_searched_and_called(serve: Serve) -> None:
    """Over streamable HTTP, with the headers of the configuration."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: it serves the test's server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = (
        "from mcp.server.mcpserver import Context, MCPServer\n"
        "server = MCPServer('far')\n"
        "@server.tool()\n"
        "def which_key(ctx: Context) -> str:\n"
        "    'the key that came'\n"
        "    return 'key ' + str(ctx.request_context.request.headers.get('x-key'))\n"
        f"server.run(transport='streamable-http', host='127.0.0.1', port={port})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)

    async def body(found: Found) -> None:
        assert await found.names("key") == ["far/which_key"]
        answer = await found.session.call_tool("call_tool", {"name": "far/which_key"})
        assert answer.content[0].text == "key secret"  # type: ignore[union-attr]

    try:
        assert _within_20_s(lambda: _listens(port))
        serve({"far": {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"X-Key": "secret"}}}, body)
    finally:
        process.kill()
        process.wait()


def test_a_server_that_ends_in_a_call_is_started_again_and_the_call_is_not_repeated(serve: Serve) -> None:
    async def body(found: Found) -> None:
        assert "ended during the call" in await found.error("a/end")
        for _ in range(40):
            await anyio.sleep(0.25)
            if await found.names("echo") and "servers_with_errors" not in await found.search("echo"):
                break
        assert await found.call("a/echo") == {"name": "echo", "arguments": {}}

    serve({"a": raw("plain")}, body)


def test_a_call_that_is_not_answered_ends_and_the_next_search_is_answered(serve: Serve) -> None:
    async def body(found: Found) -> None:
        assert "did not answer within 0.5 s" in await found.error("s/echo")
        assert "s/echo" in await found.names("echo")

    serve({"s": raw("slow")}, body, flags=("--call-timeout", "0.5"))


def test_a_list_that_is_too_long_or_has_a_name_twice_is_cut_and_says_so(serve: Serve) -> None:
    async def body(found: Found) -> None:
        answer = await found.search("thing 999", 1)
        assert answer["tools"][0]["name"] == "many/tool_999"
        assert "9000 past the first 1000" in answer["servers_with_errors"]["many"]
        assert "1 with a name that was listed before" in answer["servers_with_errors"]["twice"]
        assert "3 whose name is not" in answer["servers_with_errors"]["twice"]
        pay = (await found.search("pay first", 1))["tools"][0]
        assert (pay["name"], pay["description"]) == ("twice/pay", "first")

    serve({"many": raw("many"), "twice": raw("repeats")}, body)


def test_a_changed_list_is_read_again(serve: Serve) -> None:
    async def body(found: Found) -> None:
        assert await found.names("before") == ["c/before"]
        await found.call("c/before")
        for _ in range(40):
            await anyio.sleep(0.1)
            if await found.names("before") == ["c/after"]:
                break
        assert await found.names("before") == ["c/after"]
        assert "no tool of this name" in await found.error("c/before")

    serve({"c": raw("changes")}, body)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": 3}, {"query": "x", "limit": 0}, {"query": "x", "limit": True}, {"query": "x" * 9000}],
)
def test_wrong_arguments_are_an_error_and_no_end(serve: Serve, arguments: dict[str, Any]) -> None:
    async def body(found: Found) -> None:
        assert (await found.session.call_tool("search_tools", arguments)).is_error
        assert (await found.session.call_tool("call_tool", {"name": "a/echo", "arguments": [1]})).is_error
        assert await found.names("echo", 1) == ["a/echo"]

    serve({"a": raw("plain")}, body)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ended_by_a_signal_it_takes_its_servers_along(tmp_path: Path) -> None:
    """Also one that does not read its input, and so would not see it closed."""
    config, mark = tmp_path / "config.json", tmp_path / "process"
    config.write_text(json.dumps({"mcpServers": {"hangs": raw("hangs", str(mark))}}))
    command = [sys.executable, "-m", "cg.hints.cli", "mcp", "--config", str(config)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert _within_20_s(lambda: mark.exists() and mark.read_text() != "")
        number = int(mark.read_text())
        assert _is_running(number)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        assert _within_20_s(lambda: not _is_running(number))
    finally:
        process.kill()
        process.communicate()


def _listens(port: int) -> bool:
    with socket.socket() as look:
        return look.connect_ex(("127.0.0.1", port)) == 0


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def _within_20_s(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)
    return holds()


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    return found or pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize(
    ("program", "query", "name", "arguments", "wanted"),
    [
        ("mcp-server-time", "current time in a timezone", "get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"),
        ("mcp-server-git", "status of the working tree", "git_status", {"repo_path": "."}, "git"),
        ("mcp-server-memory", "read the whole graph", "read_graph", {}, "entities"),
        ("mcp-server-filesystem", "list a directory", "list_directory", {"path": "."}, "kept.txt"),
    ],
)
def test_public_servers_are_searched_and_called(
    serve: Serve, tmp_path: Path, program: str, query: str, name: str, arguments: dict[str, str], wanted: str
) -> None:
    """As their makers publish them; each is skipped where its program is not on the path."""
    (tmp_path / "kept.txt").write_text("x")
    arguments = {key: str(tmp_path) if value == "." else value for key, value in arguments.items()}

    async def body(found: Found) -> None:
        assert f"public/{name}" in await found.names(query, 3)
        answer = await found.session.call_tool("call_tool", {"name": f"public/{name}", "arguments": arguments})
        assert wanted in answer.content[0].text  # type: ignore[union-attr]

    args = [str(tmp_path)] if program.endswith("filesystem") else []
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    serve({"public": {"command": _program(program), "args": args, "env": env}}, body, flags=("--start-timeout", "40"))
