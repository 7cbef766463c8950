"""Path patterns. User input never becomes a regular expression, so matching takes polynomial time."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def is_pattern(path: str) -> bool:
    """Return whether a path can match several files, because it is a glob or ends with a slash."""
    return path.endswith("/") or any(sign in path for sign in "*?")


def fits(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, with slashes as separators. The comparison is case-sensitive.

    `*` and `?` match within a name. `**` matches any number of folders. A pattern without a leading slash may begin at
    any folder. A pattern with a final slash matches all files below that folder.
    """
    wanted = f"{pattern}**" if pattern.endswith("/") else pattern
    names = wanted.split("/")
    return _fits(names if wanted.startswith("/") else ["**", *names], path.split("/"), "**", _name_fits)


def _name_fits(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda wanted, sign: wanted in {sign, "?"})


def _fits(pattern: Sequence[_T], parts: Sequence[_T], star: _T, equal: Callable[[_T, _T], bool]) -> bool:
    """Return whether the parts match a pattern in which `star` matches any number of parts.

    After a mismatch, the function backtracks only to the last star. Its time is therefore at most proportional to the
    product of both lengths.
    """
    place, part, last_star, resumed = 0, 0, -1, 0
    while part < len(parts):
        if place < len(pattern) and pattern[place] == star:
            last_star, resumed = place, part
            place += 1
        elif place < len(pattern) and equal(pattern[place], parts[part]):
            place, part = place + 1, part + 1
        elif last_star >= 0:
            resumed += 1
            place, part = last_star + 1, resumed
        else:
            return False
    return all(each == star for each in pattern[place:])
