"""Detection of the author of texts that Codex records with the role `user`.

The author is the user or the program itself.
"""

import re
from collections.abc import Iterator

from ..program_text import TAGS

_TAG = re.compile(r"<([a-z][a-z0-9_-]*)[\s>]")
_ENVELOPES = TAGS | {"heartbeat", "permissions", "skill"}
_INSTRUCTIONS = "# AGENTS.md instructions"
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$\n?", re.MULTILINE)
_HEADING = r"^(?:# \S[^\n]*:|## (?:User )?Comment\b[^\n]*)[ \t]*$"
_COMMENT = re.compile(rf"^Comment:[ \t]*\n?(.*?)(?={_HEADING}|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT_HEADING = re.compile(_HEADING, re.MULTILINE)
_REMARKS = re.compile(r"^# .*\b(?:comments|annotations|findings):", re.MULTILINE | re.IGNORECASE)
_PLACE = re.compile(r"^(File|Page URL|Lines?): *(.+?) *$", re.MULTILINE)
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
    """Return what the user typed, without the file list and the editor state that Codex inserted before it.

    The user typed the text below the last heading `## My request`, and the comments on lines of code above the heading.
    Remarks of an unknown form above an empty request are returned as they are, so that no prompt is lost.
    """
    found = [*_REQUEST.finditer(text)] if text.startswith(("#", "<")) else []
    if not found:
        return text
    above, below = text[: found[-1].start()], text[found[-1].end() :].strip()
    typed = "\n\n".join(filter(None, [*_comments(above), below]))
    return typed or (above.strip() if _REMARKS.search(above) else "")


def _comments(text: str) -> Iterator[str]:
    """Yield each comment that the user typed on a line of code or a web page, with the place in brackets."""
    start = 0
    for found in _COMMENT.finditer(text):
        headings = [*_COMMENT_HEADING.finditer(text, start, found.start())]
        about = text[headings[-1].end() if headings else start : found.start()]
        place = ", ".join(
            value if name in {"File", "Page URL"} else f"{name.lower()} {value}"
            for name, value in _PLACE.findall(about)
        )
        start = found.end()
        if comment := found[1].strip():
            yield f"{comment} [{place}]" if place else comment


def without_picture_tags(text: str) -> str:
    """Return a text without the tags that mark the positions of pictures."""
    return _PICTURE.sub("", text).strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """Return a shell command that the user ran, with its output. Return None for other texts."""
    found = _SHELL.match(text.strip())
    return (found[1].strip(), (found[2] or "").strip()) if found else None
