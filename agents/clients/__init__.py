"""Configuration files of MCP clients: add, update and remove the entry of Palaver's server."""
