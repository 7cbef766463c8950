"""Shared session as one HTML file, which contains its styles and pictures and needs neither scripts nor requests."""

import hashlib
import re
from base64 import b64encode
from functools import cache
from typing import Final

from markupsafe import Markup

from ..core.shared_session import SharedSession
from .html_filters import FOLDER, html_environment
from .markdown_html import code, markdown, prompt, without_labels

_STYLES: Final = ("viewer.css", "session.css", "shared.css")
_STEM: Final = 60
"""Maximum characters of the title in the name of a file."""
_HIGHLIGHTED: Final = 2_000
"""Maximum number of calls of a session whose commands are highlighted. Highlighting multiplies the elements."""


def shared_html(session: SharedSession) -> str:
    """Return the file."""
    style = _style()
    digest = _base64(hashlib.sha256(style.encode()).digest())
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    environment = html_environment()
    environment.filters["base64"] = _base64
    return environment.get_template("shared.html.j2").render(
        session=session,
        policy=policy,
        style=Markup(style),  # noqa: S704 - from our own files
        code=code,
        markdown=markdown,
        as_prompt=prompt,
        without_labels=without_labels,
        highlighted=session.report.calls <= _HIGHLIGHTED,
    )


def file_name(session: SharedSession, suffix: str) -> str:
    """Return a name for the file of a session, from its title and its ID."""
    return f"{slug(session.report.title)}-{session.report.id[:8]}.{suffix}"


def slug(title: str) -> str:
    """Return a title with only letters, digits and dashes."""
    words = re.sub(r"[\W_]+", "-", title.lower()).strip("-")
    return words[:_STEM].rstrip("-") or "session"


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


@cache
def _style() -> str:
    return "\n".join((FOLDER / "static" / name).read_text("utf-8") for name in _STYLES)
