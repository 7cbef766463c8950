"""Tools and prompts of the suite's own test server: `python -m tests.conformance.fixture_server PORT`.

With them, scenarios that need these names test how Palaver serves any tool and any prompt.
"""

import sys
import threading
from pathlib import Path

from mcp_types import Prompt, PromptArgument

from palaver.agents.conversation_tools import CONVERSATION
from palaver.agents.http_server import serve_http
from palaver.agents.resources import PROMPTS, WorkflowPrompt
from palaver.agents.toolset import Effect, ServedTools, ServerConfig, Tool, ToolReply, Toolset
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.observe.archive import Archive
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


def asking_without_arguments(_context: object) -> ToolReply:
    """Reply after the user has accepted."""
    return ToolReply("Accepted.")


def _asked(_context: object, *, message: str = "Continue?") -> str:
    return message


def _prompt(name: str, *arguments: str, text: str) -> WorkflowPrompt:
    """Return a prompt whose text has a place for each argument."""
    listed = [PromptArgument(name=each, required=True) for each in arguments]

    def fill(_conversation: object, *values: str) -> str:
        return text.format(*values)

    return WorkflowPrompt(Prompt(name=name, arguments=listed), fill)


PROMPTS_OF_THE_SUITE = (
    _prompt("test_simple_prompt", text="This is a simple prompt for testing."),
    _prompt("test_prompt_with_arguments", "arg1", "arg2", text="Prompt with arguments: arg1='{}', arg2='{}'"),
)


FIXTURES = Toolset(
    name="fixtures",
    instructions="",
    tools=(
        Tool.of(simple_text, name="test_simple_text"),
        Tool.of(error_handling, name="test_error_handling"),
        Tool.of(slow, name="test_tool_with_progress"),
        Tool.of(simple_text, name="test_logging_tool"),
        Tool.of(asking, Effect.DESTROYS, name="test_elicitation", question=_asked),
        *(
            Tool.of(asking_without_arguments, Effect.DESTROYS, name=name, question=_asked)
            for name in ("test_input_required_result_elicitation", "test_streaming_elicitation")
        ),
    ),
    to_error_reply=lambda error: ToolReply(str(error)),
    open=lambda config: config,
)


def main(port: int) -> None:
    """Serve the tools and prompts until interrupted. Palaver's own prompts come with the toolset `conversation`."""
    PROMPTS.update({each.listed.name: each for each in PROMPTS_OF_THE_SUITE})
    config = ServerConfig(Archive(Home.find()), Renderer(), project=Path.cwd())
    serve_http(ServedTools.of([CONVERSATION, FIXTURES]), config, "0", port, lambda _address, _token: None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
