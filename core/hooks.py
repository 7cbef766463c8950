"""Hooks of coding agents: the table of the events of a session at which Palaver runs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from msgspec import Struct

CLAUDE_CODE: Final = "claude-code"
CODEX: Final = "codex"
GEMINI: Final = "gemini"
OPENCODE: Final = "opencode"


class Hook(Struct, frozen=True):
    """Row of the table of hooks. Installation, command line and documentation are derived from it.

    Attributes:
        does: What the hook does, for docs/plugin.md.
        names: Name of the event in each agent that supports it.
        budget: Maximum tokens that one call injects.
        note: Note in the help of the command line.
        tools: Pattern of the tools, or of the sources, for which an agent runs the hook. Without it, it always runs.
        seconds: Maximum duration, after which an agent stops the hook.
    """

    does: str
    names: Mapping[str, str]
    budget: int = 0
    note: str = ""
    tools: Mapping[str, str] = {}
    seconds: int = 10


class HookEvent(StrEnum):
    """Event at which a hook injects text: its name in settings and on the command line, and its row.

    `SELECTORS` in agents/hooks/hooks.py names the function that selects the text.
    """

    _value_: str
    hook: Hook

    # The default is for type checkers, which read a lookup such as `HookEvent("tool")` as a call of this method.
    def __new__(cls, name: str, hook: Hook = Hook("", {})) -> Self:  # noqa: B008 - immutable
        """Create a member with the value `name`."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.hook = hook
        return member

    SESSION_START = (
        "session-start",
        Hook(
            "Injects the memories of `palaver context`, and its lines about past sessions if they [probably matter]"
            "(#start-of-a-session). Also runs after `/clear` and after a compaction, but not in a resumed or forked"
            " session, which still contains the text",
            {CLAUDE_CODE: "SessionStart", CODEX: "SessionStart", GEMINI: "SessionStart", OPENCODE: "chat.message"},
            budget=1_000,
            note="on by default",
            tools={CLAUDE_CODE: "startup|resume|clear|compact"},
        ),
    )
    PROMPT = (
        "prompt",
        Hook(
            "Injects up to three observations of the project that are relevant to the prompt",
            {
                CLAUDE_CODE: "UserPromptSubmit",
                CODEX: "UserPromptSubmit",
                GEMINI: "BeforeAgent",
                OPENCODE: "chat.message",
            },
            budget=300,
        ),
    )
    TOOL = (
        "tool",
        Hook(
            "Injects one line. For a shell command: the failed command and the one that worked. For an edit: the check"
            " that failed after past edits of this file",
            {CLAUDE_CODE: "PreToolUse", CODEX: "PreToolUse"},
            budget=120,
            note="before a shell command or an edit",
            tools={CLAUDE_CODE: "Bash|Edit|Write|NotebookEdit", CODEX: "Bash|apply_patch"},
        ),
    )


SESSION_END: Final = "session-end"
"""Argument of `palaver hooks run` at the end of a session. It is on or off together with `session-start`."""
HOOKS: Final[Mapping[str, Hook]] = {
    **{event: event.hook for event in HookEvent},
    SESSION_END: Hook(
        "Appends one line to the file `ended-sessions`, then archives the session in the background",
        dict.fromkeys((CLAUDE_CODE, CODEX, GEMINI), "SessionEnd"),
        seconds=3,  # Codex shows a warning about a longer one.
    ),
}
"""All hooks by the argument of `palaver hooks run`."""


def switch_of(name: str) -> str:
    """Return the event in the setting `hooks` that switches a hook on."""
    return HookEvent.SESSION_START if name == SESSION_END else name
