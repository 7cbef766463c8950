"""Words of the archive for a query that shares few words with its hits, so that the caller can reword the query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from ...core.query import Filters, Mode, Query
from ..query.query_analysis import WORD
from ..query.tokenizer import terms

if TYPE_CHECKING:
    from ...archiver.store import StoredObservation
    from ...core.results import Hit
    from ..rank.candidates import Candidates
    from ..rank.fusion import Event, RankedEvents

_TITLES: Final = 20
"""Number of best events whose titles are read: those on a page of ten hits, and as many further events."""
_WORDS_MAX: Final = 8
_LENGTH_MIN: Final = 4
"""Minimum length of a word. Shorter words are mostly function words."""
_ENTRIES_MIN: Final = 2
_IDF_MIN: Final = 2.5
"""Minimum IDF of a word, which about 8 % of the entries contain. A more frequent word does not narrow a search down."""
_MATCH_MIN: Final = 0.2
"""Minimum text score of a hit that contains enough words of a query.

Of the relevant results of the development set, 51 of 73 for paraphrases and 6 of 11 for unanswerable questions are
below it, but only 14 of 441 for other questions.
"""
_COMPARED: Final = 5
"""Number of first hits of which one must contain enough words of the query."""


class _Choice(Protocol):
    @property
    def observation(self) -> StoredObservation | None: ...


class _Choices(Protocol):
    def of(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[_Choice]: ...


def vocabulary(
    query: Query, ranked: RankedEvents, choices: _Choices, snapshot: Candidates, hits: Sequence[Hit]
) -> tuple[str, ...]:
    """Return words with which to reword a query, or no words if its hits contain enough of its words.

    They come from the titles of the best events. Neither the query nor the titles of its hits contain them. They occur
    in few entries, but in more than one. For 4 of 15 paraphrases of the development set whose session is not on the
    page, one of them is a word of a title of this session.

    Other modes than `BOTH` and quoted phrases ask for exact words, or for none.
    """
    is_plain = len(query.concepts) == 1 and query.mode is Mode.BOTH and not query.cursor
    if not is_plain or ranked.query.phrases or ranked.query.no_known_term or (ranked.relevant and _match(hits)):
        return ()
    best = choices.of(ranked.events[:_TITLES], query.filters, _TITLES)
    titles = [choice.observation.observation.name for choice in best if choice.observation]
    known = {term for text in (*query.concepts, *query.also, *(hit.title for hit in hits)) for term in terms(text)}

    def is_telling(term: str) -> bool:
        is_rare = snapshot.entries_with(term) >= _ENTRIES_MIN and snapshot.idf_of_term(term) >= _IDF_MIN
        return is_rare and term not in known

    words = (word for title in titles for word in WORD.findall(title) if len(word) >= _LENGTH_MIN and word.isalpha())
    distinct: dict[str, str] = {}
    for word in words:
        stems = terms(word)
        if all(map(is_telling, stems)):
            distinct.setdefault(" ".join(stems), word)
    return tuple(islice(distinct.values(), _WORDS_MAX))


def _match(hits: Iterable[Hit]) -> bool:
    """Return whether one of the first hits contains enough words of the query. Otherwise, it matches by meaning."""
    scores = [part.value for hit in islice(hits, _COMPARED) for part in hit.parts if part.name == "words"]
    return max(scores, default=1.0) >= _MATCH_MIN
