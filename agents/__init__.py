"""MCP toolsets for agents, and the server that offers them."""
