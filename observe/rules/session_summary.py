"""Session summaries: one observation with request, investigation, results and open items of a session.

Each fact is the title of an observation of the session with its evidence, or a sentence of the last exchange.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ...core.clock import show_day
from ...core.conversation import Exchange, Session
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.origin import Origin, least
from .open_items import open_items
from .outcome import PROPOSED
from .sentences import headline
from .trimming import trim_to_budget

PARTS_MIN = 3
"""Minimum number of observations in a session with a summary. Fewer observations are as short as a summary."""
_SHOWN = {"Investigated": 2, "Learned": 3, "Completed": 5, "Next": 3}
_LABELS = {
    ObservationType.DEBUG: "Investigated",
    ObservationType.LEARNING: "Learned",
    ObservationType.PATTERN: "Learned",
    ObservationType.DECISION: "Learned",
}
_REQUEST_MIN = 12
"""Minimum length of a quoted request. A text such as `ok` has no information."""
_WORD = re.compile(r"\w{4,}")
_REPEATED = 0.7
"""Minimum share of common longer words in two titles that count as repetitions."""
SummaryFact = tuple[str, Evidence]


def build_summary(parts: Sequence[Observation], session: Session, last: Exchange) -> Observation | None:
    """Return the summary of a session from its observations, or None if there are fewer than `PARTS_MIN`."""
    with_valid_quotes = [part for part in parts if part.evidence]
    if len(with_valid_quotes) < PARTS_MIN:
        return None
    title = session.title or with_valid_quotes[0].title
    facts = [
        *_summary_facts(with_valid_quotes),
        *((f"Next: {item.text}", item.evidence) for item in islice(open_items(last), _SHOWN["Next"])),
    ]
    read = Counter(path for part in parts for path in part.files_read)
    modified = Counter(path for part in parts for path in part.files_modified)
    concepts = Counter(concept for part in parts for concept in part.concepts)
    return trim_to_budget(
        Observation(
            type=ObservationType.GENERAL,
            title=f"{SUMMARY}{headline(title)}",
            subtitle=f"Summary of {len(with_valid_quotes)} observations{_dates(with_valid_quotes)}",
            facts=tuple(fact for fact, _ in facts),
            concepts=_frequent(concepts, 6),
            files_read=_frequent(read, 6),
            files_modified=_frequent(modified, 24),
            evidence=tuple(evidence for _, evidence in facts),
            at=with_valid_quotes[-1].at,
            origin=least(Origin(part.origin) for part in with_valid_quotes),
            extractor=with_valid_quotes[-1].extractor,
        )
    )


def _summary_facts(parts: Sequence[Observation]) -> Iterator[SummaryFact]:
    """Yield the request, then investigations, lessons and results, each in chronological order."""
    yield _request(parts[0])
    for label in ("Investigated", "Learned", "Completed"):
        of_label = [part for part in parts[1:] if _label(part) == label]
        for part in _distinct(of_label)[-_SHOWN[label] :]:
            yield f"{label}: {part.title}", part.evidence[0]


def _request(first: Observation) -> SummaryFact:
    """Return the request in the words of the prompt, whose evidence follows the evidence of the facts."""
    if len(first.evidence) == len(first.facts):
        return f"Request: {first.title}", first.evidence[0]
    asked = first.evidence[len(first.facts)]
    quoted = headline(asked.quote)
    return f"Request: {quoted if len(quoted) >= _REQUEST_MIN else first.title}", asked


def _label(part: Observation) -> str:
    """Return the label of an observation. A plan without approval is not a result."""
    return "Investigated" if part.title.startswith(PROPOSED) else _LABELS.get(part.type, "Completed")


def _distinct(parts: Sequence[Observation]) -> list[Observation]:
    """Return the observations without repeated titles, such as a plan and its commit."""
    kept: list[tuple[Observation, frozenset[str]]] = []
    for part in parts:
        words = frozenset(word.lower() for word in _WORD.findall(part.title))
        if all(len(words & known) < _REPEATED * min(len(words), len(known)) or not words for _, known in kept):
            kept.append((part, words))
    return [part for part, _ in kept]


def _dates(parts: Sequence[Observation]) -> str:
    days = list(dict.fromkeys(show_day(part.at) for part in parts if part.at is not None))
    if not days:
        return ""
    return f" on {days[0]}" if len(days) == 1 else f" from {days[0]} to {days[-1]}"


def _frequent(counted: Counter[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in counted.most_common(most))
