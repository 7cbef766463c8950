"""Classification of an observation, with its concepts, files and stated results.

Evidence adds weight to each type, and the highest weight wins.

========================================  ==============================================================
evidence                                  weight
========================================  ==============================================================
a conventional prefix (`fix:`, `feat:`)   6 for the type it names
the first verb of a title                 4 (an order or a commit subject says what it does)
verb and object of a title                7 for test / config / general ("add tests", "bump", "update the readme")
only tests / settings / documents changed 7 for test / config / general
a complaint in the request                3 for bug-fix ("does not work"), 1 in a plan (its subject may be errors)
a cause or repair in the conclusion       2 for bug-fix ("root cause", "the fix was")
something changed                         2 for feature
nothing changed                           3 for debug after a complaint, else 3 for learning
a diagnosis, and nothing changed          4 for debug ("the issue is", "root cause")
========================================  ==============================================================

Concepts are names, tools and features. Paths are relative to the project. Headings such as `Verdict: possible` and
lines that introduce a list state a result.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from ...core.conversation import Exchange, Session
from ...core.observation import ObservationType
from ...core.text import strip_markdown
from .salience import CHANGED, is_noise, is_status, phrases, regex, text_table, word_set
from .statements import Heading
from .user_request import is_specific

_PREFIX = re.compile(r"(\w+)(?:\([^)]{0,40}\))?!?:\s")
_PREFIXES = {prefix: ObservationType[kind] for prefix, kind in text_table("classification.prefixes").items()}
_VERBS = {
    kind: phrases(f"classification.{kind.name.lower()}")
    for kind in ObservationType
    if kind is not ObservationType.PATTERN
}
_SPECIFIC: dict[ObservationType, int] = dict.fromkeys(
    (ObservationType.TEST, ObservationType.CONFIG, ObservationType.GENERAL), 7
)
_UNCHANGING = frozenset({ObservationType.DEBUG, ObservationType.DECISION, ObservationType.LEARNING})
"""Types that a request to inspect, think or explain indicates. They get less weight if the exchange made a change."""

_COMPLAINT = phrases("classification.complaint")
_REPAIR = phrases("classification.repair")
_DIAGNOSIS = phrases("classification.diagnosis")
_FILES = {kind: regex(f"classification.{kind.name.lower()}_files") for kind in _SPECIFIC}
"""Patterns for the files of which an exchange that changed no others is of a type."""


class TypeSignals(Struct, frozen=True):
    """Evidence of the type of an exchange: titles, texts and modified files."""

    titles: Sequence[str]
    request: str
    conclusion: str
    writes: Sequence[str]
    changed: bool
    plan: bool = False


def classify(signs: TypeSignals) -> ObservationType:
    """Return the type with the highest weight. On a tie, the first type in `ObservationType` wins."""
    weights = weigh_types(signs)
    return max(ObservationType, key=lambda kind: weights[kind])


def weigh_types(signs: TypeSignals) -> Counter[ObservationType]:
    """Return the weight of each type."""
    weights: Counter[ObservationType] = Counter()
    for title in signs.titles:
        _weigh_title(title, weights, changed=signs.changed)
    complaint = _COMPLAINT.search(signs.request) is not None
    if signs.changed:
        weights[ObservationType.FEATURE] += 2
        weights[ObservationType.BUG_FIX] += (1 if signs.plan else 3) * complaint
        weights[ObservationType.BUG_FIX] += 2 * (_REPAIR.search(signs.conclusion) is not None)
        _weigh_files(signs.writes, weights)
    else:
        weights[ObservationType.DEBUG if complaint else ObservationType.LEARNING] += 3
        weights[ObservationType.DEBUG] += 4 * (_DIAGNOSIS.search(signs.conclusion) is not None)
    return weights


def _weigh_title(title: str, weights: Counter[ObservationType], *, changed: bool) -> None:
    if (prefix := _PREFIX.match(title)) and prefix.group(1).lower() in _PREFIXES:
        weights[_PREFIXES[prefix.group(1).lower()]] += 6
        return
    for kind, verbs in _VERBS.items():
        if verbs.match(title):
            weights[kind] += _SPECIFIC.get(kind, 1 if changed and kind in _UNCHANGING else 4)


def _weigh_files(writes: Sequence[str], weights: Counter[ObservationType]) -> None:
    for kind, names in _FILES.items():
        if writes and all(names.search(path) for path in writes):
            weights[kind] += _SPECIFIC[kind]


CONCEPTS_MAX = 8

_SPAN = re.compile(r"`([^`\n]{2,48})`")
_QUOTED = re.compile(r"[\"“«]([^\"”»\n]{3,32})[\"”»]")
_IDENTIFIER = regex("classification.identifier")
_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+){0,2}\b|\b[A-Z]{3,8}\b(?![./_-])")
_PLACE = re.compile(r"https?://\S+|(?<![\w`])(?:~|\.{1,2})?(?:/?[\w.@-]+/){2,}[\w.@-]*|(?<![\w`])/[\w.@-]+/[\w.@-]+")
"""Pattern for URLs and paths, whose parts do not count as names."""
_NOT_A_NAME = re.compile(r"[\s\d\W_]*$|.*[{}<>=;|\\]|.*: |.*\([^)]*$|[\d.,:%$]+\w{0,3}$|[0-9a-f]{7,40}$")
_FILE_ENDING = re.compile(r"\.[a-z]{1,5}$")
_COMMON = word_set("classification.common")


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


READ_MAX = 8
MODIFIED_MAX = 30
_CHANGELOG = regex("classification.changelog")
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


_SHORTEST = 20
_NUMBER = re.compile(r"\s*[a-z]?\d{1,2}[.)]\s+", re.IGNORECASE)
_PART = re.compile(r"\W*(?:bug|issue|problem|step|phase|part|option)\s\#?\d", re.IGNORECASE)
"""Pattern for a heading that only numbers a topic, such as `Step 2` or `Bug #1`."""
_LOCATION = regex("classification.location")
"""Pattern for the removable end of a heading: a location (` — src/cache.py:12`), or a conjunction (`so that`)."""
_STATES = phrases("answer_headings.states")
"""Pattern for words of a heading that states a fact, such as `is` or `missing`."""
RESULT_WORDS = r"root\ cause|cause|verdict|conclusion|answer|result"
"""Words that name the result of an answer, as a pattern."""
VERDICT = re.compile(rf"\W*(?:{RESULT_WORDS}|tl;?dr|recommendation)\s*[:—–-]\s+\S", re.IGNORECASE)
"""Pattern for the beginning of a heading that contains the result, as in `Verdict: possible`."""
_ADVICE = re.compile(r"(?:i|we)(?:['’]d|\swould)\s(?:(?:also|still|just)\s)*(?=[a-z]{3,}\s.{12,})", re.IGNORECASE)
"""Pattern for the beginning of a recommendation, as in `I would keep the index in memory:`."""
_LEADS_ON = phrases("answer_headings.leads_on")
"""Pattern for the beginning of a heading that states no result, but introduces a text or gives advice."""
_UNFINISHED = regex("classification.unfinished")
"""Pattern for the end of an incomplete heading, which the list below completes: `The module contains`."""


_BESIDE = phrases("answer_headings.beside")
"""Pattern for the heading of a section without results: checks, next steps, options or sources."""


def is_beside(heading: str) -> bool:
    """Return whether this heading starts a section without results. A number before the heading is ignored."""
    return _BESIDE.match(strip_markdown(heading).lstrip("0123456789.) ")) is not None


def stated_headings(found: Iterable[Heading]) -> list[tuple[str, Heading]]:
    """Return the headings that state a result, in order, as pairs of plain text and heading."""
    plain = ((_plain(heading.raw), heading) for heading in found)
    return [(text, heading) for text, heading in plain if _states_result(text)]


def _plain(heading: str) -> str:
    """Return a heading without its number, its location and its colon."""
    text = _NUMBER.sub("", strip_markdown(heading).rstrip(" :."), count=1)
    return _LOCATION.sub("", text).rstrip(" :.,—–-")


def without_advice(text: str) -> str:
    """Strip `I would` from the start of a recommendation."""
    return _ADVICE.sub("", text, count=1)


def _states_result(text: str) -> bool:
    if VERDICT.match(text) or _ADVICE.match(text):
        return not _UNFINISHED.search(text)
    if len(text) < _SHORTEST or _PART.match(text) or not is_specific(text) or is_noise(text) or is_status(text):
        return False
    if _LEADS_ON.match(text) or _UNFINISHED.search(text):
        return False
    return CHANGED.match(text) is not None or _STATES.search(text) is not None
