"""MCP server with one tool that returns a constant, as a baseline for `palaver mcp`."""

from mcp.server import MCPServer

_REPLY = "x" * 1_500
"""Text as long as a page of ten hits."""

server = MCPServer("bare")


@server.tool()
def search(query: str) -> str:  # noqa: ARG001 - the parameter of the real tool
    """Return a constant text."""
    return _REPLY


if __name__ == "__main__":
    server.run()
