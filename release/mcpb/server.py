"""Entry point of the MCP bundle: run `palaver mcp`."""

import sys

from palaver.__main__ import start

sys.argv = ["palaver", "mcp", *sys.argv[1:]]
start()
