"""What is searched and what is asked: the values that every development set is read into."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

Metric: TypeAlias = Callable[[Sequence[str], Mapping[str, float]], float]
"""Item ids in ranked order and the gains of the relevant ones -> a number from 0 to 1."""

DEPTH = 100
"""How many items an engine is asked for; a relevant item further down counts as not found."""


class Passage(Struct, frozen=True):
    """A stretch of text. Several passages may belong to one item; an item ranks as its best passage does."""

    item: str
    text: str
    project: str


class Question(Struct, frozen=True):
    """One query. `gains` maps each relevant item to its gain; empty where the right answer is nothing.

    `kinds` are the rows in which it counts, from narrow to wide.
    """

    id: str
    text: str
    kinds: tuple[str, ...]
    gains: Mapping[str, float]
    project: str | None = None

    @property
    def half(self) -> str:
        """`tune` or `held`: fixed for ever by the id, so that what is tuned on one half is judged on the other."""
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
    """An item and the score that ordered it; higher is better, comparable within one engine only."""

    item: str
    score: float


class Searcher(Protocol):
    """An engine that has read a corpus."""

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Items, each at most once, best first; none when the engine thinks that nothing answers the query."""
        ...


Engine: TypeAlias = Callable[[Corpus], Searcher]
