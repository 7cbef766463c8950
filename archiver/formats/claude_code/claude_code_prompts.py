"""Detection of the author of texts that Claude Code records with the role `user`.

The author is the user, a command, or the program itself.
"""

import re
from typing import NamedTuple

from ....core.conversation import Kind, Speaker
from ..program_text import split_program_text

_COMMAND = ("command-name", "command-message", "command-args", "command-contents")
_SHELL_INPUT = ("bash-input",)
_SHELL_OUTPUT = ("bash-stdout", "bash-stderr")
_ACTIONS = (*_COMMAND, *_SHELL_INPUT, *_SHELL_OUTPUT)
"""Tags around what the user did: a slash command or a shell command with its output."""
_INTERRUPTED = "[Request interrupted by user"
_CONTINUED = "This session is being continued from a previous conversation"
_TEAM_MESSAGE = re.compile(r"<teammate-message(?=[\s>])")


class AttributedText(NamedTuple):
    """Text without its enclosing tags, and the author of the text."""

    speaker: Speaker
    kind: Kind
    text: str
    tool: str = ""
    added: str = ""
    """Text of the program that was recorded in the same message."""

    @classmethod
    def injected(cls, text: str) -> "AttributedText":
        """Return a text that Claude Code wrote itself. Its author is the host, not the user."""
        return cls(Speaker.HOST, Kind.INJECTED, text)


def attribute(text: str) -> AttributedText:
    """Return a text without its enclosing tags, together with its author.

    The tags of commands are removed only if they enclose the whole text, because users also quote these tags. The text
    is empty if the tags enclose nothing.
    """
    typed, added, reminders = split_program_text(text.strip())
    if not typed:
        return AttributedText.injected(added or reminders)
    if typed.startswith("<"):
        tags = _actions(typed)
        if tags:
            return _unwrapped(tags)
    if typed.startswith(_CONTINUED):
        return AttributedText(Speaker.HOST, Kind.COMPACTION, typed)
    if typed.startswith(_INTERRUPTED) and typed.endswith("]") and "\n" not in typed:
        return AttributedText.injected("\n".join(filter(None, (typed, added))))
    return AttributedText(Speaker.HUMAN, Kind.PROMPT, typed, added=added)


def team_task(text: str) -> str:
    """Return the task in a message to a member of an agent team, or an empty string for other messages.

    Besides tasks, the program sends its own notices to members, as JSON.
    """
    typed, task, _ = split_program_text(text.strip())
    return "" if typed or task.startswith("{") or not _TEAM_MESSAGE.match(text.strip()) else task


def _actions(text: str) -> dict[str, str]:
    """Return the content of each tag around a command, by tag name. The result is empty if there is other text."""
    found: dict[str, str] = {}
    rest = text
    while rest.startswith("<"):
        tag = next((tag for tag in _ACTIONS if rest.startswith((f"<{tag}>", f"<{tag} "))), None)
        end = rest.find(f"</{tag}>") if tag else -1
        if tag is None or end < 0:
            return {}
        found.setdefault(tag, rest[rest.find(">") + 1 : end].strip())
        rest = rest[end + len(tag) + 3 :].lstrip()
    return {} if rest else found


def _unwrapped(tags: dict[str, str]) -> AttributedText:
    first, content = next(iter(tags)), "\n".join(filter(None, tags.values()))
    if first in _COMMAND:
        return _command(tags, local=first == "command-name")
    if first in _SHELL_INPUT:
        return AttributedText(Speaker.HUMAN, Kind.CALL, f"! {tags[first]}", tool="Bash")
    return AttributedText(Speaker.TOOL, Kind.RESULT, content, tool="Bash")


def _command(tags: dict[str, str], *, local: bool) -> AttributedText:
    """Return a slash command with its author.

    A `local` command is run by the program, not by the assistant. A local command counts as a prompt only if its
    arguments have at least 3 words. An example is `/plan add a login page`, which is a request to the assistant.
    """
    name, arguments = tags.get("command-name", tags.get("command-message", "")), tags.get("command-args", "")
    text = f"{name} {arguments}".strip()
    if local and len(arguments.split()) < 3:
        return AttributedText.injected(text)
    return AttributedText(Speaker.HUMAN, Kind.PROMPT, text)
