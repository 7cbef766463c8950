"""Project that a question names, as in "what did we do in the cipher-box project"."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_NOUN: Final = r"(?:project|repo|repository|codebase)"


class NamedProject(NamedTuple):
    """Project that a question names, and the rest of the question."""

    name: str
    rest: str


def named_project(question: str, projects: Iterable[str]) -> NamedProject | None:
    """Return the project that a question names, or None if it names none or several.

    A name of only letters, such as `cli` or `test`, can be an ordinary word. It counts only beside a word such as
    "project" or "repo".
    """
    distinct = {name.casefold(): name for name in projects if name}
    found = [(name, phrase) for name in distinct.values() if (phrase := _phrase(question, name))]
    if len(found) != 1:
        return None
    [(name, phrase)] = found
    rest = f"{question[: phrase.start()]} {question[phrase.end() :]}"
    return NamedProject(name, " ".join(rest.split()).strip(" ,;:"))


def _phrase(question: str, name: str) -> re.Match[str] | None:
    """Return the phrase that names the project, such as "in the cipher-box project"."""
    phrase = re.search(
        rf"""(?:\b(?:in|of|for|from|at|on|with)\s+)? (?:\b(?:the|our|my)\s+)? (?P<before>\b{_NOUN}\s+)?
        [`"'“]? (?<![\w./@+-]){re.escape(name)}(?![\w/@+-]|\.\w) (?:['’]s\b|[`"'”])? (?P<after>\s+{_NOUN}\b)?
        """,
        question,
        re.IGNORECASE | re.VERBOSE,
    )
    if phrase and name.isalpha() and not (phrase["before"] or phrase["after"]):
        return None
    return phrase
