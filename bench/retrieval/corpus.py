"""Values that every development set is loaded into: passages, questions, corpora."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

Metric: TypeAlias = Callable[[Sequence[str], Mapping[str, float]], float]
"""Function of ranked item IDs and gains of the relevant items that returns a number from 0 to 1."""

DEPTH = 100
"""Number of items requested from an engine; later ones count as not found."""


class Passage(Struct, frozen=True):
    """Part of an item's text. An item ranks by its best passage."""

    item: str
    text: str
    project: str


class Question(Struct, frozen=True):
    """One query. `gains` maps relevant items to their gain; it is empty if no answer exists.

    `kinds` are the rows in which it counts, from narrow to wide.
    """

    id: str
    text: str
    kinds: tuple[str, ...]
    gains: Mapping[str, float]
    project: str | None = None

    @property
    def half(self) -> str:
        """Return the split, `tune` or `held`, by a hash of the ID."""
        return "held" if hashlib.sha256(self.id.encode()).digest()[0] & 1 else "tune"


class Corpus(Struct, frozen=True, eq=False):
    """One development set. Passages stand in their natural order: neighbours in a dialogue are neighbours here.

    `transcripts` is the archive that the passages were cut from, where items are whole conversations. `suffix` is that
    of the files that passages are, where they are files.
    """

    name: str
    about: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    metrics: Mapping[str, Metric]
    transcripts: Path | None = None
    suffix: str = ""


class Ranked(NamedTuple):
    """Item with the score that ordered it; comparable within one engine only."""

    item: str
    score: float


class Searcher(Protocol):
    """Engine that has indexed a corpus."""

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Return items, each at most once, best first."""
        ...


Engine: TypeAlias = Callable[[Corpus], Searcher]
