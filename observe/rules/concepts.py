"""Concepts: names, tools and features that help to find an observation."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

CONCEPTS_MAX = 8

_SPAN = re.compile(r"`([^`\n]{2,48})`")
_QUOTED = re.compile(r"[\"“«]([^\"”»\n]{3,32})[\"”»]")
_IDENTIFIER = re.compile(
    r"\b(?:[a-z]+[A-Z]\w+|[A-Z][a-z0-9]+(?:[A-Z]\w*)+|[a-zA-Z]+_\w+|[A-Z]{2,}[a-z]\w+)\b|(?<!\S)--[a-z][\w-]+"
)
_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+){0,2}\b|\b[A-Z]{3,8}\b(?![./_-])")
_PLACE = re.compile(r"https?://\S+|(?<![\w`])(?:~|\.{1,2})?(?:/?[\w.@-]+/){2,}[\w.@-]*|(?<![\w`])/[\w.@-]+/[\w.@-]+")
"""Pattern for URLs and paths, whose parts do not count as names."""
_NOT_A_NAME = re.compile(r"[\s\d\W_]*$|.*[{}<>=;|\\]|.*: |.*\([^)]*$|[\d.,:%$]+\w{0,3}$|[0-9a-f]{7,40}$")
_FILE_ENDING = re.compile(r"\.[a-z]{1,5}$")
_COMMON = frozenset(
    "true false null none undefined string number boolean object array const let var return this self any void int str"
    " get post put delete patch when found classname changelog changelog.md readme readme.md claude claude.md todo main"
    " index git and not the all api url json html css using key keys value values name names app origin branch commit"
    " head read write edit file files path test tests type types error errors data code list item items result results"
    " v1 v2 v3 src lib entry cli".split()
)


def concepts(texts: Sequence[str], files: Iterable[str]) -> tuple[str, ...]:
    """Return at most `CONCEPTS_MAX` names, best first, from Markdown texts and modified files.

    The first text has the highest weight.
    """
    weights: Counter[str] = Counter()
    spelt: dict[str, str] = {}
    for position, text in enumerate(texts):
        weight = 3 if position == 0 else 1
        for name, value in _names(text):
            key = _FILE_ENDING.sub("", name.lower())
            weights[key] += value if value == 1 else weight * value
            spelt.setdefault(key, name)
    for path in files:
        stem = PurePosixPath(path).name.partition(".")[0]
        if stem.lower() in weights:
            weights[stem.lower()] += 2
    best = sorted((key for key in weights if weights[key] > 1), key=lambda key: -weights[key])
    return tuple(spelt[key] for key in best[:CONCEPTS_MAX])


def _names(text: str) -> Iterable[tuple[str, int]]:
    bare = _PLACE.sub(" ", text)
    for pattern, value in ((_SPAN, 3), (_QUOTED, 2), (_IDENTIFIER, 2), (_PROPER, 1)):
        for match in pattern.finditer(text if pattern is _SPAN else bare):
            name = _tidy(match.group(1) if pattern.groups else match.group())
            if name and name.lower() not in _COMMON and not _NOT_A_NAME.match(name):
                yield name, value


def _tidy(name: str) -> str:
    """Strip arguments, folders and line numbers from a name. Return an empty string if the rest is too long."""
    name = re.sub(r"\(.*\)$|:\d+(?:-\d+)?$", "", name.strip(" .,:\"'"))
    if "/" in name and " " not in name:
        name = PurePosixPath(name).name or name
    name = name.strip()
    return name if 1 < len(name) <= 40 and name.count(" ") <= 2 else ""
