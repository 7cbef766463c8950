"""Paths and patterns of paths. The matcher is fixed: nothing a person types becomes a regular expression."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def is_pattern(path: str) -> bool:
    """Whether a path is meant for many files: a glob, or a folder, which ends with a slash."""
    return path.endswith("/") or any(sign in path for sign in "*?")


def fits(pattern: str, path: str) -> bool:
    """Whether a pattern covers a path, both with slashes and in one case.

    `*` and `?` stay within a name, `**` is any folders. What does not begin with a slash may begin at any folder, and
    what ends with one is everything below.
    """
    wanted = f"{pattern}**" if pattern.endswith("/") else pattern
    names = wanted.split("/")
    return _fits(names if wanted.startswith("/") else ["**", *names], path.split("/"), "**", _name_fits)


def _name_fits(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda wanted, sign: wanted in {sign, "?"})


def _fits(pattern: Sequence[_T], parts: Sequence[_T], star: _T, equal: Callable[[_T, _T], bool]) -> bool:
    """Whether the parts are those of the pattern, in which `star` is any number of them. Goes back to the last star
    only, so it takes at most the product of both lengths.
    """
    here, there, last, resumed = 0, 0, -1, 0
    while there < len(parts):
        if here < len(pattern) and pattern[here] == star:
            last, resumed = here, there
            here += 1
        elif here < len(pattern) and equal(pattern[here], parts[there]):
            here, there = here + 1, there + 1
        elif last >= 0:
            resumed += 1
            here, there = last + 1, resumed
        else:
            return False
    return all(rest == star for rest in pattern[here:])
