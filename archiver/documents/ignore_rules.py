"""Rules of `.gitignore` files, with the semantics of git."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAME: Final = ".gitignore"
_BYTES_MAX: Final = 1 << 20
"""Maximum size of a file with rules. A larger file is ignored."""


class _Rules(NamedTuple):
    """Rules of one file, and the folder to which their patterns are relative."""

    folder: Path
    spec: "GitIgnoreSpec"


class IgnoreRules:
    """Rules that apply in one folder: its own `.gitignore` and those of its parents."""

    def __init__(self, rules: tuple[_Rules, ...] = ()) -> None:
        self._rules = rules

    @classmethod
    def of(cls, folder: Path) -> "IgnoreRules":
        """Return the rules of the repository that apply in a folder.

        If the repository ignores the folder itself, no rule of its parents applies, because the user chose this folder.
        """
        inside = [folder, *folder.parents]
        top = next((index for index, each in enumerate(inside) if os.access(each / ".git", os.F_OK)), 0)
        rules = cls(_load(inside[top], inside[top] / ".git" / "info" / "exclude"))
        for parent in reversed(inside[1 : top + 1]):
            rules = rules.enter(parent)
        return (cls() if rules.match(folder, is_folder=True) else rules).enter(folder)

    def enter(self, folder: Path) -> "IgnoreRules":
        """Return the rules of a subfolder: these rules and those of its own `.gitignore`."""
        found = _load(folder, folder / _NAME)
        return IgnoreRules(self._rules + found) if found else self

    def match(self, path: Path, *, is_folder: bool = False) -> bool:
        """Return whether a path is ignored.

        If rules of several files match, the innermost file decides. Within a file, the last matching rule decides.
        """
        for rules in reversed(self._rules):
            if not path.is_relative_to(rules.folder):
                continue
            result = rules.spec.check_file(f"{path.relative_to(rules.folder).as_posix()}{'/' if is_folder else ''}")
            if result.include is not None:
                return result.include
        return False


def _load(folder: Path, file: Path) -> tuple[_Rules, ...]:
    """Return the rules of a file, or nothing if it is missing, unreadable, a link or too large."""
    try:
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _BYTES_MAX:
            return ()
        lines = os.fsdecode(file.read_bytes()).splitlines()
    except OSError:
        return ()
    from pathspec import GitIgnoreSpec

    try:
        return (_Rules(folder, GitIgnoreSpec.from_lines(lines)),)
    except ValueError:  # Like git, skip the invalid lines only.
        return (_Rules(folder, GitIgnoreSpec.from_lines(filter(_is_valid, lines))),)


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
