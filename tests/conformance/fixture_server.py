"""Tools of the suite's own test server, as a toolset: `python -m tests.conformance.fixture_server PORT`.

With them, scenarios that need these tools test how Palaver serves any tool.
"""

import sys
import threading
from pathlib import Path

from palaver.agents.http_server import serve_http
from palaver.agents.toolset import Effect, ServedTools, ServerConfig, Tool, ToolReply, Toolset
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.templates.render import Renderer

_SECONDS = 3.5
"""Duration of the slow call. The scenario expects three progress notifications, which are sent every second."""


def simple_text(_context: object) -> ToolReply:
    """Return a text."""
    return ToolReply("This is a simple text response for testing.")


def error_handling(_context: object) -> ToolReply:
    """Fail."""
    raise InvalidInput("This tool intentionally returns an error for testing")


def slow(_context: object) -> ToolReply:
    """Take some seconds."""
    threading.Event().wait(_SECONDS)
    return ToolReply("Done.")


def asking(_context: object, message: str) -> ToolReply:
    """Return the message after the user has accepted it."""
    return ToolReply(f"Accepted: {message}")


def _asked(_context: object, *, message: str) -> str:
    return message


FIXTURES = Toolset(
    name="fixtures",
    instructions="",
    tools=(
        Tool.of(simple_text, name="test_simple_text"),
        Tool.of(error_handling, name="test_error_handling"),
        Tool.of(slow, name="test_tool_with_progress"),
        Tool.of(asking, Effect.DESTROYS, name="test_elicitation", question=_asked),
    ),
    to_error_reply=lambda error: ToolReply(str(error)),
    open=lambda config: config,
)


def main(port: int) -> None:
    """Serve the tools until interrupted."""
    config = ServerConfig(Home.find(), None, Renderer(), project=Path.cwd())
    serve_http(ServedTools.of([FIXTURES]), config, "0", port, lambda _address, _token: None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
