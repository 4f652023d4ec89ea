"""One server behind ours: started, listed, called, and started again after its end."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from cg.hints.mcp_server.config import Permissions, ServerSpec
from cg.hints.mcp_server.tools import FoundTool, admitted, found_tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

MAX_PAGES = 100  # of one listing; a server that pages without end is no reason to wait for it
RESTART_PAUSE_S = 2.0  # between two starts of one server
RELIST_PAUSE_S = 0.2  # before a list is read again: a flood of changes costs five listings a second
_SHOWN_CHARACTERS = 300  # of an error that another server wrote


class UpstreamError(Exception):
    """A server did not do what was asked; the message is for the caller and names the server."""


@asynccontextmanager
async def _transport(spec: ServerSpec) -> AsyncGenerator[Any]:
    if spec.url:
        async with (
            create_mcp_http_client(headers=dict(spec.headers)) as http,
            streamable_http_client(spec.url, http_client=http) as streams,
        ):
            yield streams
        return
    command = StdioServerParameters(command=spec.command, args=list(spec.args), env=dict(spec.env), cwd=spec.cwd)
    async with stdio_client(command) as streams:
        yield streams


def _reason(fault: BaseException) -> str:
    """One short line; of several faults at once, the first."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    text = str(fault)[:_SHOWN_CHARACTERS]
    return text if isinstance(fault, MCPError | UpstreamError) else f"{type(fault).__name__}: {text}"


class Upstream:
    """`run` holds the connection for as long as it is not cancelled; the other methods may be called beside it."""

    def __init__(
        self, spec: ServerSpec, permissions: Permissions, start_timeout_s: float, call_timeout_s: float
    ) -> None:
        self.name = spec.name
        self.tools: tuple[FoundTool, ...] = ()  # replaced, never changed
        self.trouble = "is starting"  # why it has no tools, or not all; empty where all is well
        self.tried = anyio.Event()  # its first start has succeeded or failed
        self._spec, self._permissions = spec, permissions
        self._start_timeout_s, self._call_timeout_s = start_timeout_s, call_timeout_s
        self._client: Client | None = None
        self._wanted = anyio.Event()  # it has ended, and somebody asked for it
        self._news = anyio.Event()  # its list has changed, or it has ended
        self._has_ended = False

    async def run(self) -> None:
        while True:
            self._wanted, self._news, self._has_ended = anyio.Event(), anyio.Event(), False
            try:
                await self._live()
            except Exception as fault:  # whatever a server or its transport does, the others go on
                self._end(_reason(fault))
            self.tried.set()
            await anyio.sleep(RESTART_PAUSE_S)
            await self._wanted.wait()

    def want(self) -> None:
        """Start it again, soon, if it has ended."""
        if self._client is None:
            self._wanted.set()

    def _end(self, trouble: str) -> None:
        self._client, self.tools, self.trouble = None, (), trouble

    async def _live(self) -> None:
        """Start, list, and list again at every change; returns or raises when there is no connection any more."""
        # The handshake of the released versions: every server speaks it, and it brings notices of changed lists unasked.
        client = Client(_transport(self._spec), mode="legacy", cache=None, message_handler=self._hear)
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout_s) as scope:
            async with client:
                await self._list(client)
                scope.deadline = math.inf
                self._client = client
                self.tried.set()
                await self._follow(client)
        if scope.cancelled_caught:
            raise UpstreamError(f"did not start within {self._start_timeout_s:g} s")

    async def _follow(self, client: Client) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            if self._has_ended:
                raise UpstreamError("has ended")
            await anyio.sleep(RELIST_PAUSE_S)
            try:
                with anyio.fail_after(self._start_timeout_s):
                    await self._list(client)
            except TimeoutError:
                raise UpstreamError(f"did not list its tools within {self._start_timeout_s:g} s") from None

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._news.set()

    async def _list(self, client: Client) -> None:
        tools: list[FoundTool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            page = await client.session.send_request(request, types.ListToolsResult)
            tools += [
                found_tool(self.name, tool.name, tool.title, tool.description, tool.input_schema) for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None:
                break
        self.tools, self.trouble = admitted(tools, self._permissions.permit)

    async def call(self, tool: FoundTool, arguments: dict[str, Any]) -> types.CallToolResult:
        """What the server answers, unread; raises UpstreamError. A call is never made twice."""
        if self._client is None:
            self.want()
            raise UpstreamError(f"server {self.name}: {self.trouble}; it is being started again")
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool.name, arguments=arguments))
        try:
            with anyio.fail_after(self._call_timeout_s):
                return await self._client.session.send_request(request, types.CallToolResult)
        except TimeoutError:
            message = f"did not answer within {self._call_timeout_s:g} s; whether the call took effect is not known"
        except MCPError as fault:
            message = _reason(fault)
            if fault.code == types.CONNECTION_CLOSED:
                message = "ended during the call; it is being started again, and the call was not repeated"
                self._has_ended = True
                self._news.set()
                self._wanted.set()
        except Exception as fault:
            message = _reason(fault)
        raise UpstreamError(f"server {self.name}: {message}")
