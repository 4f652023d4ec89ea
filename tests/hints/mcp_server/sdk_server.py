"""An MCP server made with the official SDK: 60 tools on one subject, each answering with its own name and arguments.

python sdk_server.py SUBJECT OBJECT,OBJECT,...
"""

import json
import sys

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

VERBS = ("create", "cancel", "list", "rename", "archive", "share", "export", "approve", "copy", "restore")
SUBJECT, OBJECTS = sys.argv[1], sys.argv[2].split(",")


async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]}
    return types.ListToolsResult(
        tools=[
            types.Tool(name=f"{verb}_{thing}", description=f"{SUBJECT}: {verb} a {thing}", input_schema=schema)
            for verb in VERBS
            for thing in OBJECTS
        ]
    )


async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = json.dumps([SUBJECT, params.name, params.arguments])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server = Server(SUBJECT, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
