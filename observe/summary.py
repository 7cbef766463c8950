"""What was a session about? One observation that tells what was asked, looked into, learned and done, and what is open.

It says nothing of its own: each fact is the title of an observation of the session, with that one's proof, or a
sentence of its last exchange.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ..core.clock import show_day
from ..core.conversation import Exchange, Session
from ..core.observation import SUMMARY, Evidence, Observation, ObservationType
from ..core.origin import Origin, least
from .rules.budget import affordable
from .rules.open_items import open_items
from .rules.outcome import PROPOSED
from .rules.wording import headline

PARTS_MIN = 3
"""Observations from which a session is worth summing up; fewer are read as fast as their summary."""
_SHOWN = {"Investigated": 2, "Learned": 3, "Completed": 5, "Next": 3}
_LABELS = {
    ObservationType.DEBUG: "Investigated",
    ObservationType.LEARNING: "Learned",
    ObservationType.PATTERN: "Learned",
    ObservationType.DECISION: "Learned",
}
_REQUEST_MIN = 12
"""Characters from which the first words of a request say something: `ok` does not."""
_WORD = re.compile(r"\w{4,}")
_REPEATED = 0.7
"""The share of a title's longer words from which it repeats another."""
Fact = tuple[str, Evidence]


def sum_up(parts: Sequence[Observation], session: Session, last: Exchange) -> Observation | None:
    """The summary of a session whose observations, all of one file, are `parts`; None where they are few."""
    proven = [part for part in parts if part.evidence]
    if len(proven) < PARTS_MIN:
        return None
    title = session.title or proven[0].title
    facts = [
        *_told(proven),
        *((f"Next: {item.text}", item.evidence) for item in islice(open_items(last), _SHOWN["Next"])),
    ]
    read = Counter(path for part in parts for path in part.files_read)
    modified = Counter(path for part in parts for path in part.files_modified)
    concepts = Counter(concept for part in parts for concept in part.concepts)
    return affordable(
        Observation(
            type=ObservationType.GENERAL,
            title=f"{SUMMARY}{headline(title)}",
            subtitle=f"Summary of {len(proven)} observations{_when(proven)}",
            facts=tuple(fact for fact, _ in facts),
            concepts=_frequent(concepts, 6),
            files_read=_frequent(read, 6),
            files_modified=_frequent(modified, 24),
            evidence=tuple(evidence for _, evidence in facts),
            at=proven[-1].at,
            origin=least(Origin(part.origin) for part in proven),
            extractor=proven[-1].extractor,
        )
    )


def _told(parts: Sequence[Observation]) -> Iterator[Fact]:
    """The request, then what was investigated, learned and completed, each in the order in which it happened."""
    yield _request(parts[0])
    for label in ("Investigated", "Learned", "Completed"):
        of_label = [part for part in parts[1:] if _label(part) == label]
        for part in _distinct(of_label)[-_SHOWN[label] :]:
            yield f"{label}: {part.title}", part.evidence[0]


def _request(first: Observation) -> Fact:
    """What was asked, in the words that prove it; behind the facts stands first whence they came."""
    if len(first.evidence) == len(first.facts):
        return f"Request: {first.title}", first.evidence[0]
    asked = first.evidence[len(first.facts)]
    said = headline(asked.quote)
    return f"Request: {said if len(said) >= _REQUEST_MIN else first.title}", asked


def _label(part: Observation) -> str:
    """A plan that nobody agreed to yet completes nothing."""
    return "Investigated" if part.title.startswith(PROPOSED) else _LABELS.get(part.type, "Completed")


def _distinct(parts: Sequence[Observation]) -> list[Observation]:
    """Those whose title does not say in other words what an earlier one says: a plan and then its commit."""
    kept: list[tuple[Observation, frozenset[str]]] = []
    for part in parts:
        words = frozenset(word.lower() for word in _WORD.findall(part.title))
        if all(len(words & known) < _REPEATED * min(len(words), len(known)) or not words for _, known in kept):
            kept.append((part, words))
    return [part for part, _ in kept]


def _when(parts: Sequence[Observation]) -> str:
    days = list(dict.fromkeys(show_day(part.at) for part in parts if part.at is not None))
    if not days:
        return ""
    return f" on {days[0]}" if len(days) == 1 else f" from {days[0]} to {days[-1]}"


def _frequent(counted: Counter[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in counted.most_common(most))
