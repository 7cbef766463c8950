"""Project, branch and files that a question names, as in "what did we do to store.py in the cipher-box project"."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...core.query import Filters

_PROJECT: Final = r"(?:project|repo|repository|codebase)"
_BRANCH: Final = "branch"
_FILE: Final = re.compile(r"(?<![\w/.@-])(?:[\w.-]+/)*[\w-][\w.-]*\.[a-z]\w{0,4}(?![\w/(-]|\.\w)")
"""Pattern for a file name with an extension, which is not part of a call such as `json.dumps(`."""


class NamedScope(NamedTuple):
    """Filters that a question names, and the question without the names of the project and of the branch."""

    filters: Filters
    rest: str


def named_scope(question: str, filters: Filters, projects: Iterable[str], branches: Iterable[str]) -> NamedScope:
    """Return the filters with the project, the branch and the files that the question names.

    A filter that is already set is not replaced. A name of only letters, such as `cli` or `main`, can be an ordinary
    word. It counts only beside a word such as "project" or "branch".
    """
    files, rest = tuple(dict.fromkeys(_FILE.findall(question))), question
    if not filters.projects and (named := _only(rest, projects, _PROJECT)):
        filters, rest = replace(filters, projects=(named.name,)), named.rest
    if not filters.branches and (named := _only(rest, branches, _BRANCH)):
        filters, rest = replace(filters, branches=(named.name,)), named.rest
    return NamedScope(replace(filters, files=files) if files and not filters.files else filters, rest)


class _Named(NamedTuple):
    name: str
    rest: str


def _only(question: str, names: Iterable[str], noun: str) -> _Named | None:
    """Return the only name in the question, and the rest of the question. None if it contains none or several."""
    distinct = {name.casefold(): name for name in names if name}
    found = [(name, phrase) for name in distinct.values() if (phrase := _phrase(question, name, noun))]
    if len(found) != 1:
        return None
    [(name, phrase)] = found
    rest = f"{question[: phrase.start()]} {question[phrase.end() :]}"
    return _Named(name, " ".join(rest.split()).strip(" ,;:"))


def _phrase(question: str, name: str, noun: str) -> re.Match[str] | None:
    """Return the phrase that contains the name, such as "in the cipher-box project"."""
    phrase = re.search(
        rf"""(?:\b(?:in|of|for|from|at|on|with)\s+)? (?:\b(?:the|our|my)\s+)? (?P<before>\b{noun}\s+)?
        [`"'“]? (?<![\w./@+-]){re.escape(name)}(?![\w/@+-]|\.\w) (?:['’]s\b|[`"'”])? (?P<after>\s+{noun}\b)?
        """,
        question,
        re.IGNORECASE | re.VERBOSE,
    )
    if phrase and name.isalpha() and not (phrase["before"] or phrase["after"]):
        return None
    return phrase
