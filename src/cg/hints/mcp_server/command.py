"""The command line of `cg-hints mcp`."""

from __future__ import annotations

from cg.hints.mcp_server.config import read_config
from cg.hints.refusal import Code, Refusal
from cg.hints.shell.arguments import Parser, seconds

START_TIMEOUT_S, CALL_TIMEOUT_S = 10.0, 120.0


def parser() -> Parser:
    made = Parser(
        prog="cg-hints mcp",
        description="An MCP server on the standard streams, before the servers that a configuration names: their tools"
        " are found by search_tools and called by call_tool. Needs the extra [mcp].",
        allow_abbrev=False,
    )
    made.add_argument("--config", metavar="FILE", required=True, help='JSON: {"mcpServers": {name: {"command": ...}}}')
    made.add_argument(
        "--allow", metavar="GLOB", action="append", default=[], help="only these tools (server/tool); may be repeated"
    )
    made.add_argument(
        "--deny", metavar="GLOB", action="append", default=[], help="never these tools; may be repeated, beats --allow"
    )
    made.add_argument(
        "--start-timeout", type=seconds, metavar="S", default=START_TIMEOUT_S, help="for a server's list (default: 10)"
    )
    made.add_argument(
        "--call-timeout", type=seconds, metavar="S", default=CALL_TIMEOUT_S, help="for a tool's answer (default: 120)"
    )
    return made


def run(arguments: list[str]) -> int:
    """Serve until the client closes the streams; returns the exit code, raises Refusal(USAGE)."""
    flags = parser().parse_args(arguments)
    config = read_config(flags.config)
    config = config._replace(permissions=config.permissions.narrowed(flags.allow, flags.deny))
    try:
        import anyio

        from cg.hints.mcp_server.front import serve
    except ModuleNotFoundError as fault:
        if (fault.name or "").split(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        raise Refusal(Code.USAGE, "the MCP SDK is missing: pip install 'cg-context[mcp]'") from None
    anyio.run(serve, config, flags.start_timeout, flags.call_timeout)
    return 0
