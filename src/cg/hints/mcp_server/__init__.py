"""`cg-hints mcp`: one MCP server before several, whose tools are searched instead of listed.

Needs the extra `[mcp]`. Only `upstream`, `front` and what they serve load the SDK.
"""
