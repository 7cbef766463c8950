"""Training data: pairs of commits and code, and questions about coding sessions."""

import io
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import zstandard

BATCH = 48
QUESTION_SHARE, OUTCOME_SHARE = 0.16, 0.04
"""Shares of the batches that consist of questions, and of those that consist of prompts with their outcomes.

With 40 % questions, the model overfits them after 200 steps.
"""
HELD_OUT_PROJECTS = ("badlogic+pi-mono", "FSM1+cipher-box", "obra+episodic-memory", "simonw+claude-code-transcripts")
HELD_OUT_SOURCES = 20
"""One in this number of sources of pairs is held out for validation."""
MIN_PROMPT = 40
"""Minimum length in characters of a prompt or an outcome that stands alone as a passage."""
SEPARATOR = " || "

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """Question, and the exchange that answers it. `passage` contains the prompt, `SEPARATOR` and the outcome."""

    query: str
    kind: str
    project: str
    passage: str


@dataclass(frozen=True, slots=True)
class Validation:
    """Data for validation.

    Attributes:
        questions: Questions of held-out projects.
        passages: All passages among which a question is searched.
        pairs: Pairs of held-out sources, by kind.
    """

    questions: tuple[Question, ...]
    passages: tuple[str, ...]
    pairs: dict[str, tuple[Pair, ...]]


class TrainingData:
    """Batches, each from one source, so that the other passages of a batch are hard negatives."""

    def __init__(self, folder: Path) -> None:
        """Load `pairs.jsonl.zst` and `questions.jsonl` from `folder`."""
        self._pairs: dict[str, list[Pair]] = defaultdict(list)
        held_out: dict[str, list[Pair]] = defaultdict(list)
        for source, kind, pair in _pairs(folder / "pairs.jsonl.zst"):
            if zlib.crc32(source.encode()) % HELD_OUT_SOURCES == 0:
                held_out[kind].append(pair)
            else:
                self._pairs[source].append(pair)
        _merge_small(self._pairs)
        questions = list(_questions(folder / "questions.jsonl"))
        self._questions: dict[str, list[Question]] = defaultdict(list)
        for question in questions:
            if question.project not in HELD_OUT_PROJECTS:
                self._questions[question.project].append(question)
        fixed = random.Random(0)
        self.validation = Validation(
            tuple(question for question in questions if question.project in HELD_OUT_PROJECTS),
            tuple(sorted({question.passage for question in questions})),
            {kind: tuple(fixed.sample(pairs, min(250, len(pairs)))) for kind, pairs in sorted(held_out.items())},
        )

    def batch(self, step: int) -> tuple[str, list[Pair]]:
        """Return the kind of batch number `step` and its pairs. The same number returns the same batch."""
        chance = random.Random(f"batch {step}")
        drawn = chance.random()
        if drawn < QUESTION_SHARE:
            return "questions", self._question_batch(chance, _as_question)
        if drawn < QUESTION_SHARE + OUTCOME_SHARE:
            return "outcomes", self._question_batch(chance, _as_outcome)
        sources = sorted(self._pairs)
        [source] = chance.choices(sources, [len(self._pairs[source]) ** 0.7 for source in sources])
        return "pairs", _distinct(chance.sample(self._pairs[source], BATCH))

    def _question_batch(self, chance: random.Random, form: Callable[[random.Random, Question], Pair]) -> list[Pair]:
        """Return pairs of one project. If the project has too few passages, add pairs of other projects."""
        projects = sorted(self._questions)
        [first] = chance.choices(projects, [len(self._questions[project]) for project in projects])
        order = [first, *chance.sample([project for project in projects if project != first], len(projects) - 1)]
        rows = [
            row for project in order for row in chance.sample(self._questions[project], len(self._questions[project]))
        ]
        passages: dict[str, Question] = {}
        for row in rows:
            passages.setdefault(row.passage, row)
            if len(passages) == BATCH:
                break
        return _distinct([form(chance, row) for row in passages.values()])


def _as_question(chance: random.Random, row: Question) -> Pair:
    """Pair a question with its whole passage or, at random, with only the prompt or only the outcome of the passage."""
    prompt, _, outcome = row.passage.partition(SEPARATOR)
    drawn = chance.random()
    if drawn < 0.35 and len(prompt) >= MIN_PROMPT:
        return row.query, prompt
    if drawn > 0.85 and len(outcome) >= MIN_PROMPT:
        return row.query, outcome
    return row.query, row.passage


def _as_outcome(chance: random.Random, row: Question) -> Pair:
    """Pair a prompt with its outcome. If one of them is too short, return a pair of `_as_question` instead."""
    prompt, _, outcome = row.passage.partition(SEPARATOR)
    if len(prompt) >= MIN_PROMPT and len(outcome) >= MIN_PROMPT:
        return prompt, outcome
    return _as_question(chance, row)


def _distinct(pairs: list[Pair]) -> list[Pair]:
    """Drop pairs with a query or passage of an earlier pair, which would be false negatives."""
    queries: set[str] = set()
    passages: set[str] = set()
    kept: list[Pair] = []
    for query, passage in pairs:
        if query not in queries and passage not in passages:
            kept.append((query, passage))
        queries.add(query)
        passages.add(passage)
    return kept


def _merge_small(pairs: dict[str, list[Pair]]) -> None:
    """Merge all sources with less than one batch of pairs into one source. If it also is too small, drop it."""
    small = [source for source, own in pairs.items() if len(own) < BATCH]
    merged = [pair for source in small for pair in pairs.pop(source)]
    if len(merged) >= BATCH:
        pairs["small sources"] = merged


def _pairs(path: Path) -> Iterator[tuple[str, str, Pair]]:
    with path.open("rb") as compressed, zstandard.ZstdDecompressor().stream_reader(compressed) as stream:
        for line in io.BufferedReader(stream):
            row = orjson.loads(line)
            yield row["src"], row["kind"], (row["q"], row["p"])


def _questions(path: Path) -> Iterator[Question]:
    for line in path.read_bytes().splitlines():
        row = orjson.loads(line)
        yield Question(row["query"], row["kind"], row["file"].partition("/")[0], row["passage"])
