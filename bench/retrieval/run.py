"""Run of one engine over one corpus: answers, metrics and times."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from .corpus import DEPTH, Corpus, Engine, Question, Ranked


class Answer(Struct, frozen=True):
    """Question with the score of the first item (minus infinity if there is none) and each metric."""

    question: Question
    top: float
    values: Mapping[str, float]


class Run(Struct, frozen=True):
    """Answers of an engine to all questions of a corpus. Times are in seconds."""

    engine: str
    answers: tuple[Answer, ...]
    build: float
    query: float
    """Median over the questions."""

    def values(self, metric: str, kind: str, half: str) -> list[float]:
        """Return a metric for each question of a kind, in `tune`, `held` or `all`."""
        return [answer.values[metric] for answer in self._of(kind, half)]

    def tops(self, kind: str, half: str = "all") -> list[float]:
        """Return the first score of each question of a kind, in `tune`, `held` or `all`."""
        return [answer.top for answer in self._of(kind, half)]

    def _of(self, kind: str, half: str) -> list[Answer]:
        return [
            answer for answer in self.answers if kind in answer.question.kinds and half in {answer.question.half, "all"}
        ]


def run(name: str, engine: Engine, corpus: Corpus) -> Run:
    """Build an engine over a corpus and ask all questions."""
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
