"""Exclusion: folders and projects that the settings keep out of the archive."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...core.errors import ConfigInvalid


class Exclusion:
    """Knows excluded folders by patterns of a shell, in which `*` also stands for slashes.

    A pattern that begins with `/` or `~` names folders by their whole path, every other one by their bare name, at any
    depth. Everything below a folder is excluded with it. Upper and lower case differ.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Raises `ConfigInvalid` for a pattern that could never match."""
        self._names = [pattern.rstrip("/\\") for pattern in patterns if not _is_whole(pattern)]
        self._paths = [str(Path(pattern).expanduser()) for pattern in patterns if _is_whole(pattern)]
        for name in self._names:
            if not name or "/" in name or "\\" in name:
                raise ConfigInvalid(
                    f"exclude: {name!r} is neither a name nor a whole path",
                    hint='Write a bare name such as "secret-*", or a path that begins with / or ~.',
                )

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def covers(self, folder: str) -> bool:
        """Whether a folder, written as the agent's system writes paths, or one that it lies in is excluded."""
        if not self or not folder:
            return False
        parts = folder.replace("\\", "/").rstrip("/").split("/")
        if any(fnmatchcase(part, name) for part in parts if part for name in self._names):
            return True
        wholes = ("/".join(parts[: end + 1]) for end in range(len(parts)))
        return any(fnmatchcase(whole, path) for whole in wholes for path in self._paths)


def _is_whole(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or pattern[1:3] in {":\\", ":/"}
