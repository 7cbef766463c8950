"""Files of an exchange, with paths relative to the project."""

import re
from collections.abc import Iterable

from msgspec import Struct

from ...core.conversation import Exchange, Session

READ_MAX = 8
MODIFIED_MAX = 30
_CHANGELOG = re.compile(
    r"(?:CHANGELOG|HISTORY|RELEASE.?NOTES)(?:.*\.(?:md|mdx|markdown|rst|txt|adoc|org)|[^.]*)", re.IGNORECASE
)
"""Pattern for the name of a changelog: a text file, or a file without extension."""


class TouchedFiles(Struct, frozen=True):
    """Files in the order of their first occurrence. A modified file is not listed as read."""

    read: tuple[str, ...]
    modified: tuple[str, ...]

    def named_in(self, text: str) -> "TouchedFiles":
        """Return the files whose name occurs in a text."""
        return TouchedFiles(
            tuple(path for path in self.read if file_name(path) in text),
            tuple(path for path in self.modified if file_name(path) in text),
        )


def touched_files(exchange: Exchange, session: Session) -> TouchedFiles:
    """Return the files of an exchange, absolute if outside the project."""
    roots = tuple(root for root in (session.cwd, exchange.cwd) if root)
    modified = tuple(dict.fromkeys(relative_path(path, roots) for path in exchange.writes))
    read = dict.fromkeys(relative_path(path, roots) for path in exchange.reads)
    return TouchedFiles(tuple(path for path in read if path not in modified), modified)


def relative_path(path: str, roots: Iterable[str]) -> str:
    """Return a path relative to the first root that contains it, with forward slashes."""
    slashed = path.replace("\\", "/")
    for root in roots:
        folder = root.replace("\\", "/").rstrip("/") + "/"
        if slashed.startswith(folder) and len(slashed) > len(folder):
            return slashed[len(folder) :]
    return slashed


def file_name(path: str) -> str:
    """Return the last part of a path, which can contain slashes or backslashes."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def is_changelog(path: str) -> bool:
    """Return whether a file is a changelog. A module whose name begins like one, such as `history_table.py`, is not."""
    return _CHANGELOG.fullmatch(file_name(path)) is not None
