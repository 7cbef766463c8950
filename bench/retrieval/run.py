"""Run of one engine over one corpus: answers, metrics and times."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from .corpus import DEPTH, Corpus, Engine, Question, Ranked


class Answer(Struct, frozen=True):
    """Result of one question.

    Attributes:
        top: Score of the best item, or minus infinity without results.
        values: Value by metric. Empty for a question without an answer.
    """

    question: Question
    top: float
    values: Mapping[str, float]


class Run(Struct, frozen=True):
    """Answers of an engine to all questions of a corpus.

    Attributes:
        build: Seconds for building the engine.
        query: Median seconds per question.
    """

    engine: str
    answers: tuple[Answer, ...]
    build: float
    query: float

    def values(self, metric: str, kind: str, split: str) -> list[float]:
        """Return the metric of each question of a kind in a split: `train`, `test` or `all`."""
        return [answer.values[metric] for answer in self._of(kind, split)]

    def tops(self, kind: str, split: str = "all") -> list[float]:
        """Return the best score of each question of a kind in a split: `train`, `test` or `all`."""
        return [answer.top for answer in self._of(kind, split)]

    def _of(self, kind: str, split: str) -> list[Answer]:
        return [
            answer
            for answer in self.answers
            if kind in answer.question.kinds and split in {answer.question.split, "all"}
        ]


def run(name: str, engine: Engine, corpus: Corpus) -> Run:
    """Build an engine for a corpus and run all questions."""
    started = time.perf_counter()
    searcher = engine(corpus)
    build = time.perf_counter() - started
    answers: list[Answer] = []
    seconds: list[float] = []
    for question in corpus.questions:
        started = time.perf_counter()
        ranked = searcher.search(question.text, DEPTH, question.project)
        seconds.append(time.perf_counter() - started)
        answers.append(_answer(question, ranked, corpus))
    return Run(name, tuple(answers), build, statistics.median(seconds))


def _answer(question: Question, ranked: Sequence[Ranked], corpus: Corpus) -> Answer:
    items = [found.item for found in ranked]
    values = {name: metric(items, question.gains) for name, metric in corpus.metrics.items()} if question.gains else {}
    return Answer(question, ranked[0].score if ranked else -math.inf, values)
