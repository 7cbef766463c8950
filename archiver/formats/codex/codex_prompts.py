"""Who wrote a text that Codex filed under the user's name: the person, or the program itself."""

import re

_TAG = re.compile(r"<([a-z][a-z0-9_-]*)[\s>]")
_ENVELOPES = {
    "codex_delegation",
    "codex_internal_context",
    "environment_context",
    "heartbeat",
    "hook_prompt",
    "internal_model_context",
    "permissions",
    "recommended_plugins",
    "skill",
    "subagent_notification",
    "system-reminder",
    "turn_aborted",
    "user_action",
    "user_instructions",
}
_INSTRUCTIONS = "# AGENTS.md instructions"
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$\n?", re.MULTILINE)
_PICTURE = re.compile(r"</?image(?: [^>]*)?>")
_SHELL = re.compile(
    r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(?:<result>\n?(.*?)\n?</result>)?", re.DOTALL
)


def is_envelope(text: str, *, told_apart: bool) -> bool:
    """Whether a text is nothing but one of the program's own.

    Events tell what a person typed from what the program adds, so among them (`told_apart`) only the program's known
    tags count. Items do not: there every tag of the program's kind does. None of HTML has such a name.
    """
    text = text.strip()
    if text.startswith(_INSTRUCTIONS):
        return True
    tag = _TAG.match(text)
    if tag is None:
        return False
    closing = text[text.rfind("</") :]
    closed = closing.startswith(f"</{tag[1]}") and closing.endswith(">")
    return closed and (tag[1] in _ENVELOPES or ("_" in tag[1] and not told_apart))


def request(text: str) -> str:
    """What the person asked, without the files and the editor's state that stand above it."""
    found = [*_REQUEST.finditer(text)] if text.startswith(("#", "<")) else []
    return text[found[-1].end() :].strip() if found else text


def without_pictures(text: str) -> str:
    """The text without the tags that mark a picture's place."""
    return _PICTURE.sub("", text).strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """A command that the person ran past the assistant, and its output."""
    found = _SHELL.match(text.strip())
    return (found[1].strip(), (found[2] or "").strip()) if found else None
