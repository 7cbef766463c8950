"""Definition of the agent `search-conversation`, and the limits of one question to a language model.

The definition is loaded from `agents/search-conversation.md`. Claude Code loads the same file as a subagent, and
`clients/companion_files.py` converts it for other agents.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

_FILE: Final = re.compile(r"---\n(?P<front>.*?)\n---\n+(?P<prompt>.*)", re.DOTALL)
_FIELD: Final = re.compile(r"^([\w-]+):(.*)", re.MULTILINE)


class AgentDefinition(Struct, frozen=True):
    """Definition of an agent: its instructions, and the fields that Claude Code reads.

    Attributes:
        description: When to call the agent, and what it returns.
        tools: Names of the tools in Claude Code, which begin with `mcp__` and the server's name.
        model: Model that Claude Code uses.
        prompt: Instructions in Markdown.
    """

    name: str
    description: str
    tools: tuple[str, ...]
    model: str
    prompt: str

    @property
    def plain_tools(self) -> tuple[str, ...]:
        """Distinct tool names without the name of the server, such as `search`."""
        return tuple(dict.fromkeys(name.rpartition("__")[2] for name in self.tools))


def source() -> str:
    """Return the content of the packaged file `search-conversation.md`."""
    return (files("palaver.agents") / "search-conversation.md").read_text("utf-8")


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of a Markdown file's front matter, and the text below it.

    Each field in the files of the plugin is one line, so no YAML parser is needed.
    """
    found = _FILE.fullmatch(text)
    if found is None:
        raise ValueError("the file has no front matter")
    return {name: value.strip() for name, value in _FIELD.findall(found["front"])}, found["prompt"].strip()


@cache
def agent_definition() -> AgentDefinition:
    """Load the definition of the agent `search-conversation` from its packaged file."""
    fields, prompt = front_matter(source())
    tools = tuple(name.strip() for name in fields["tools"].split(","))
    return AgentDefinition(fields["name"], fields["description"], tools, fields["model"], prompt)


class LoopLimits(Struct, frozen=True):
    """Limits of one question: messages of the model, tokens of all its calls, seconds, and dollars.

    `cost` also serves as the budget, so it enables the model. If `cost` is None, the settings must contain a budget.
    """

    turns: int = 8
    tokens: int = 100_000
    seconds: float = 180
    cost: float | None = None
