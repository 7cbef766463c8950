"""Call of a hook: the JSON object that a coding agent writes to the standard input of a hook.

Claude Code, Codex and Gemini CLI use the same fields. docs/plugin.md names their documentation. The object is checked
by hand, because loading pydantic would double the time that a hook takes.
"""

import re
from pathlib import PurePath
from typing import Final

import orjson
from msgspec import Struct

from ...archiver.formats.gemini.added_text import split_added
from ...archiver.formats.json_values import first_string, mapping, string
from ...core.injection import HookEvent

INPUT_MAX: Final = 1 << 20
"""Maximum bytes of the JSON object. A hook ignores a longer object."""
_PROMPT_MAX: Final = 2_000
"""Number of characters at the start of a prompt that are used as a search query."""
_LINE_MAX: Final = 4_000
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add) File: (.+?)\s*$", re.MULTILINE)
"""Pattern for a file name in a patch of Codex's tool `apply_patch`."""
_GEMINI_PROMPT: Final = "BeforeAgent"
"""Name of the prompt event in Gemini CLI."""
_NAMES: Final = {
    HookEvent.SESSION_START: ("SessionStart",),
    HookEvent.PROMPT: ("UserPromptSubmit", _GEMINI_PROMPT),
    HookEvent.TOOL: ("PreToolUse",),
}
"""Names of each event: first that of Claude Code and Codex, then that of Gemini CLI."""


class HookCall(Struct, frozen=True):
    """Call of a hook.

    Attributes:
        name: Name of the event in the agent's protocol. The reply repeats it.
        source: Reason for the start of a session: `startup`, `resume`, `clear` or `compact`.
        command: Shell command that the agent is about to run.
        file: File that the agent is about to edit. For a patch, this is its first file.
    """

    event: HookEvent
    name: str
    session_id: str
    cwd: str
    source: str = ""
    prompt: str = ""
    command: str = ""
    file: str = ""

    @classmethod
    def parse(cls, event: HookEvent, data: bytes) -> "HookCall | None":
        """Return the call, or None if the data is too long, not a JSON object, or without an absolute path in `cwd`."""
        if len(data) > INPUT_MAX:
            return None
        try:
            fields = mapping(orjson.loads(data))
        except orjson.JSONDecodeError:
            return None
        session_id, cwd = string(fields.get("session_id")), string(fields.get("cwd"))
        if "\0" in cwd or len(cwd) > _LINE_MAX or not PurePath(cwd).is_absolute():
            return None
        name, tool = string(fields.get("hook_event_name")), mapping(fields.get("tool_input"))
        prompt = string(fields.get("prompt"))
        if name == _GEMINI_PROMPT:  # without a terminal, Gemini CLI puts the text of an earlier hook before the prompt
            prompt, _ = split_added(prompt)
        command, file = string(tool.get("command")), first_string(tool, "file_path", "notebook_path")
        if patched := _PATCHED.search(command):
            command, file = "", str(PurePath(cwd, patched[1]))
        return cls(
            event,
            name if name in _NAMES[event] else _NAMES[event][0],
            session_id[:_LINE_MAX],
            cwd,
            string(fields.get("source")),
            prompt[:_PROMPT_MAX],
            command if len(command) <= _LINE_MAX else "",
            file if len(file) <= _LINE_MAX else "",
        )

    def reply(self, text: str) -> str:
        """Return the JSON line that makes the agent add a text to the session."""
        output = {"hookEventName": self.name, "additionalContext": text}
        return orjson.dumps({"hookSpecificOutput": output}).decode()
