"""Common format of the development sets, which consist of passages and questions."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

Metric: TypeAlias = Callable[[Sequence[str], Mapping[str, float]], float]
"""Function that rates a ranking from 0 to 1. Its arguments are the ranked item IDs and the gains of relevant items."""

DEPTH = 100
"""Number of items requested from an engine. Items after them count as not found."""


class Passage(Struct, frozen=True):
    """Part of an item's text. An item ranks by its best passage."""

    item: str
    text: str
    project: str


class Question(Struct, frozen=True):
    """Query with its correct results.

    Attributes:
        kinds: Rows of the result table in which the question counts.
        gains: Gain by relevant item. Empty for a question without an answer.
        project: Project to search, or None for all projects.
        rewordings: Other wordings. Their author knew neither the sessions nor the answers.
    """

    id: str
    text: str
    kinds: tuple[str, ...]
    gains: Mapping[str, float]
    project: str | None = None
    rewordings: tuple[str, ...] = ()

    @property
    def split(self) -> str:
        """Split of the question, `train` or `test`, by a hash of its ID."""
        return "test" if hashlib.sha256(self.id.encode()).digest()[0] & 1 else "train"


class Corpus(Struct, frozen=True, eq=False):
    """Development set.

    Attributes:
        about: Description of the set and its items.
        passages: Passages in their original order.
        transcripts: Archive of transcripts with the passages, if the items are conversations.
        suffix: Suffix of the files, if the passages are files.
    """

    name: str
    about: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    metrics: Mapping[str, Metric]
    transcripts: Path | None = None
    suffix: str = ""


class Ranked(NamedTuple):
    """Item with its score. Scores of different engines are not comparable."""

    item: str
    score: float


class Searcher(Protocol):
    """Engine that has indexed a corpus."""

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Return up to `limit` distinct items, best first."""
        ...


Engine: TypeAlias = Callable[[Corpus], Searcher]
