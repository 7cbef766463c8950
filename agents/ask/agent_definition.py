"""Definition of the agent `search-conversation`, which answers questions with the three tools of the archive.

Claude Code loads the same file as a subagent.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

_FILE: Final = re.compile(r"---\n(?P<front>.*?)\n---\n+(?P<prompt>.*)", re.DOTALL)
_FIELD: Final = re.compile(r"^(\w+):(.*)", re.MULTILINE)


class AgentDefinition(Struct, frozen=True):
    """Definition of an agent: its instructions, and the fields that Claude Code reads.

    Attributes:
        description: When to call the agent, and what it returns.
        tools: Names of the tools as Claude Code knows them, with the name of the server.
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
    """Return the content of the packaged file."""
    return (files("palaver.agents") / "search-conversation.md").read_text("utf-8")


@cache
def agent_definition() -> AgentDefinition:
    """Return the packaged definition. Each field of its front matter is one line, so no YAML parser is needed."""
    found = _FILE.fullmatch(source())
    if found is None:
        raise ValueError("search-conversation.md has no front matter")
    fields = {name: text.strip() for name, text in _FIELD.findall(found["front"])}
    tools = tuple(name.strip() for name in fields["tools"].split(","))
    return AgentDefinition(fields["name"], fields["description"], tools, fields["model"], found["prompt"].strip())
