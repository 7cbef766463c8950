"""Effect of rewordings: questions are searched alone, with one rewording, and with three rewordings."""

import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import fmean, quantiles
from typing import NamedTuple

from ..table import table
from .corpus import Corpus, Question
from .ours import Ours

_COUNTS = {"alone": 0, "with one rewording": 1, "with three rewordings": 3}
_SPLITS = ("all", "train", "test")
_FIRST, _PAGE = 50, 10
"""Number of hits for the rank of a session, and number of hits of a usual page."""
_RANKS = (1, 5, 10)
_LOST_AFTER = 5


class Search(NamedTuple):
    """One search.

    Attributes:
        sessions: Sessions of the hits in order.
        seconds: Seconds of a usual page.
        first: First session of each wording when it is searched alone.
    """

    question: Question
    sessions: Sequence[str]
    seconds: float
    first: Sequence[str]

    def is_hit(self, rank: int) -> bool:
        """Return whether the correct session is among the first `rank` sessions."""
        return any(session in self.question.gains for session in [*dict.fromkeys(self.sessions)][:rank])

    @property
    def is_lost(self) -> bool:
        """True if a wording alone has the correct session first, and it is not among the first five of this search."""
        return any(session in self.question.gains for session in self.first) and not self.is_hit(_LOST_AFTER)


def has_rewordings(corpus: Corpus) -> bool:
    """Return whether any question of a corpus has rewordings."""
    return any(question.rewordings for question in corpus.questions)


def reworded(corpus: Corpus, ours: Ours) -> str:
    """Return a table with a row per number of rewordings and split.

    For one rewording, each question is searched once with each of its three rewordings, and the values are means.
    """
    ours.find("warm up", _PAGE)
    rows: list[list[str]] = []
    for name, count in _COUNTS.items():
        searches = list(_searches(corpus, ours, count))
        rows += (
            [name, split, *_cells([one for one in searches if split in {one.question.split, "all"}])]
            for split in _SPLITS
        )
    ranks = " / ".join(f"hit@{rank}" for rank in _RANKS)
    header = [
        "questions",
        "split",
        f"paraphrases, {ranks}",
        "first alone, but not in five",
        "paraphrases refused",
        "negatives refused",
        "hits per session",
        "median, 90 %, 99 % of times",
    ]
    return table(header, rows)


def _searches(corpus: Corpus, ours: Ours, count: int) -> Iterator[Search]:
    first: dict[str, list[str]] = {}
    for question in corpus.questions:
        if question.rewordings:
            chosen = [question.rewordings] if count > 1 else combinations(question.rewordings, count)
            for also in chosen:
                started = time.perf_counter()
                ours.find(question.text, _PAGE, also=also)
                seconds = time.perf_counter() - started
                sessions = [ours.item(hit) for hit in ours.find(question.text, _FIRST, also=also)]
                for wording in (question.text, *also):
                    if wording not in first:
                        first[wording] = [ours.item(hit) for hit in ours.find(wording, 1)]
                yield Search(
                    question, sessions, seconds, [item for name in (question.text, *also) for item in first[name]]
                )


def _cells(searches: Sequence[Search]) -> list[str]:
    positives = [one for one in searches if one.question.gains]
    negatives = [one for one in searches if not one.question.gains]
    pages = [one.sessions[:_PAGE] for one in searches if one.sessions]
    times = quantiles([one.seconds for one in searches], n=100)
    return [
        " / ".join(f"{fmean(one.is_hit(rank) for one in positives):.3f}" for rank in _RANKS),
        f"{fmean(one.is_lost for one in positives):.3f}",
        *(f"{fmean(not one.sessions for one in some):.3f}" for some in (positives, negatives)),
        f"{fmean(len(page) / len({*page}) for page in pages):.2f}",
        " / ".join(f"{1000 * times[at]:.1f}" for at in (49, 89, 98)) + " ms",
    ]
