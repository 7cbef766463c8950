"""Tests of searches for memories or documents alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from palaver.core.query import Mode
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.fusion import Event, RankedEvents
from palaver.search.rank.item_finder import MemoryFinder

from ..history import NO_FILTERS

EVENTS = [
    replace(Event.unranked(key), score=score, plain=score, words=words)
    for key, score, words in [(1, 0.3, 0.2), (2, 0.1, 0.1), (3, 0.05, 0.6)]
]


class Engine(NamedTuple):
    """Engine that always returns three items: a clear match, a weak match, and a match of many words."""

    words_score: float

    def find(self, *_: object) -> RankedEvents:
        return RankedEvents(EVENTS, AnalyzedQuery("kettle"), threshold=0.2, words_threshold=self.words_score)


def found(admitted: Sequence[int], *, words_score: float = 2.0, weak: bool = False) -> list[int]:
    finder: Any = MemoryFinder(*[None] * 3)  # type: ignore[arg-type]
    vars(finder)["_engine"] = Engine(words_score)

    def load(keys: Sequence[int]) -> dict[int, int]:
        return {key: key for key in keys}

    return [
        each for each, *_ in finder._found("kettle", Mode.BOTH, NO_FILTERS, load, set(admitted).__contains__, weak=weak)
    ]


@pytest.mark.parametrize(
    ("admitted", "words_score", "weak", "expected"),
    [
        ([1, 2, 3], 2.0, False, [1, 2, 3]),
        ([1, 3], 2.0, False, [1, 3]),
        ([2, 3], 2.0, False, []),
        ([2, 3], 2.0, True, [2, 3]),
        ([2, 3], 0.5, False, [2, 3]),
        ([2], 0.5, False, []),
    ],
)
def test_only_admitted_items_make_a_list_relevant(
    admitted: list[int], words_score: float, weak: bool, expected: list[int]
) -> None:
    """Results are returned only if an item that passes the filter is clearly relevant, at any rank."""
    assert found(admitted, words_score=words_score, weak=weak) == expected


@pytest.mark.parametrize(
    ("score", "words", "expected"), [(0.1, 0.0, 0.35), (0.2, 0.0, 0.76), (0.05, 2.0, 0.715), (0.0, 0.0, 0.0)]
)
def test_similarity_is_calibrated_to_the_threshold(score: float, words: float, expected: float) -> None:
    """The relevance threshold has the similarity 0.7, whatever the other events are."""
    event = replace(Event.unranked(1), score=score, plain=score, words=words)
    alone = RankedEvents([event], AnalyzedQuery("kettle"), threshold=0.2, words_threshold=2.0)

    assert alone.similarity(event) == pytest.approx(expected)
    assert replace(alone, events=[event, *EVENTS]).similarity(event) == alone.similarity(event)
