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


class Search(NamedTuple):
    """One search: its question, the sessions of the hits in order, and the seconds of a usual page."""

    question: Question
    sessions: Sequence[str]
    seconds: float

    def is_hit(self, rank: int) -> bool:
        """Return whether the correct session is among the first `rank` sessions."""
        return any(session in self.question.gains for session in [*dict.fromkeys(self.sessions)][:rank])


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
        "paraphrases refused",
        "negatives refused",
        "hits per session",
        "median, 90 %, 99 % of times",
    ]
    return table(header, rows)


def _searches(corpus: Corpus, ours: Ours, count: int) -> Iterator[Search]:
    for question in corpus.questions:
        if question.rewordings:
            chosen = [question.rewordings] if count > 1 else combinations(question.rewordings, count)
            for also in chosen:
                started = time.perf_counter()
                ours.find(question.text, _PAGE, also=also)
                seconds = time.perf_counter() - started
                hits = ours.find(question.text, _FIRST, also=also)
                yield Search(question, [ours.item(hit) for hit in hits], seconds)


def _cells(searches: Sequence[Search]) -> list[str]:
    positives = [one for one in searches if one.question.gains]
    negatives = [one for one in searches if not one.question.gains]
    pages = [one.sessions[:_PAGE] for one in searches if one.sessions]
    times = quantiles([one.seconds for one in searches], n=100)
    return [
        " / ".join(f"{fmean(one.is_hit(rank) for one in positives):.3f}" for rank in _RANKS),
        *(f"{fmean(not one.sessions for one in some):.3f}" for some in (positives, negatives)),
        f"{fmean(len(page) / len({*page}) for page in pages):.2f}",
        " / ".join(f"{1000 * times[at]:.1f}" for at in (49, 89, 98)) + " ms",
    ]
