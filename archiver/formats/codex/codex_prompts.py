"""Detection of the author of texts that Codex records with the role `user`.

The author is the user or the program itself.
"""

import re

from ..program_text import TAGS

_TAG = re.compile(r"<([a-z][a-z0-9_-]*)[\s>]")
_ENVELOPES = TAGS | {"heartbeat", "permissions", "skill"}
_INSTRUCTIONS = "# AGENTS.md instructions"
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$\n?", re.MULTILINE)
_PICTURE = re.compile(r"</?image(?: [^>]*)?>")
_SHELL = re.compile(
    r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(?:<result>\n?(.*?)\n?</result>)?", re.DOTALL
)


def is_envelope(text: str, *, known_only: bool) -> bool:
    """Return whether Codex wrote a text: it is enclosed in tags of Codex, or contains the instructions of AGENTS.md.

    With `known_only`, only known tags count. Otherwise, any tag with an underscore counts too, because HTML tags never
    contain underscores. Set `known_only` for the text of an event, because users typed most of these texts.
    """
    text = text.strip()
    if text.startswith(_INSTRUCTIONS):
        return True
    tag = _TAG.match(text)
    if tag is None:
        return False
    closing = text[text.rfind("</") :]
    closed = closing.startswith(f"</{tag[1]}") and closing.endswith(">")
    return closed and (tag[1] in _ENVELOPES or ("_" in tag[1] and not known_only))


def request(text: str) -> str:
    """Return the user's request, without the file list and the editor state that Codex inserted before it."""
    found = [*_REQUEST.finditer(text)] if text.startswith(("#", "<")) else []
    return text[found[-1].end() :].strip() if found else text


def without_picture_tags(text: str) -> str:
    """Return a text without the tags that mark the positions of pictures."""
    return _PICTURE.sub("", text).strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """Return a shell command that the user ran, with its output. Return None for other texts."""
    found = _SHELL.match(text.strip())
    return (found[1].strip(), (found[2] or "").strip()) if found else None
