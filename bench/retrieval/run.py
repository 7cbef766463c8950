"""One engine over one corpus: what it answered, how good that was, and how long it took."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from .corpus import DEPTH, Corpus, Engine, Question, Ranked


class Answer(Struct, frozen=True):
    """A question, the score of the first item (minus infinity when there was none), and each metric's value."""

    question: Question
    top: float
    values: Mapping[str, float]


class Run(Struct, frozen=True):
    """An engine's answers to all questions of a corpus, in their order. Times are in seconds."""

    engine: str
    answers: tuple[Answer, ...]
    build: float
    query: float
    """Median over the questions."""

    def values(self, metric: str, kind: str, half: str) -> list[float]:
        """A metric's value for each question of a kind, in `tune`, `held` or `all` of them."""
        return [answer.values[metric] for answer in self._of(kind, half)]

    def tops(self, kind: str, half: str = "all") -> list[float]:
        """The first score for each question of a kind, in `tune`, `held` or `all` of them."""
        return [answer.top for answer in self._of(kind, half)]

    def _of(self, kind: str, half: str) -> list[Answer]:
        return [
            answer for answer in self.answers if kind in answer.question.kinds and half in {answer.question.half, "all"}
        ]


def run(name: str, engine: Engine, corpus: Corpus) -> Run:
    """Build an engine over a corpus and ask it everything."""
    started = time.perf_counter()
    searcher = engine(corpus)
    build = time.perf_counter() - started
    answers: list[Answer] = []
    seconds: list[float] = []
    for question in corpus.questions:
        started = time.perf_counter()
        ranked = searcher.search(question.text, DEPTH, question.project)
        seconds.append(time.perf_counter() - started)
        answers.append(_judged(question, ranked, corpus))
    return Run(name, tuple(answers), build, statistics.median(seconds))


def _judged(question: Question, ranked: Sequence[Ranked], corpus: Corpus) -> Answer:
    items = [found.item for found in ranked]
    values = {name: metric(items, question.gains) for name, metric in corpus.metrics.items()} if question.gains else {}
    return Answer(question, ranked[0].score if ranked else -math.inf, values)
