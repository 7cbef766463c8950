"""Synthetic archives of any size with realistic word frequencies, vectors and filter values."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from msgspec import Struct

from palaver.archiver.store import Embedding, Source, Store
from palaver.archiver.store.change_log import TOKEN_BYTES
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.core.query import Filters

from .material import Material

VERSION = 1
"""Version of the generator. Increment it when the output changes."""
DAY = 86_400_000
_START = 1_700_000_000_000
_TYPES = tuple(ObservationType)
_PER_SESSION = 50
_PROJECTS, _CONCEPTS, _FILES, DAYS = 20, 30, 20, 400
_TOKENS = 10, 210
"""Minimum and maximum number of tokens of a text. Real prompts and observations have 110 tokens on average."""
_SPREAD = 0.6
"""Factor of the noise that is added to a real vector. The noise is the difference of two other vectors."""


class FilteredQuery(Struct, frozen=True):
    """Query text with filters."""

    words: str
    filters: Filters


class ArchiveWriter:
    """Deterministic writer of items. Half of them are exchanges, half are observations, and each has a vector."""

    def __init__(self, material: Material, model: str) -> None:
        """Prepare a writer. Vectors are stored under the model name `model`."""
        self._random = np.random.default_rng(7)
        self._material, self._model = material, model

    def fill(self, store: Store, items: int, progress: Callable[[int], None]) -> None:
        """Write a number of items."""
        for number in range(-(-items // (2 * _PER_SESSION))):
            with store.transaction():
                self.session(store, number)
            progress(min(items, (number + 1) * 2 * _PER_SESSION))

    def questions(self, count: int) -> Iterator[FilteredQuery]:
        """Yield `count` queries: the questions of the material in rotation, each with different filters."""
        for words in islice(cycle(self._material.questions), count):
            pick: list[int] = self._random.integers(0, 1 << 30, size=4).tolist()
            after = int(self._random.integers(0, DAYS // 2))
            yield FilteredQuery(
                words,
                Filters(
                    after=_START + after * DAY,
                    before=_START + (after + DAYS // 2) * DAY + pick[0] % 1_000,
                    projects=(f"project{pick[1] % _PROJECTS}", f"project{pick[1] % _PROJECTS + 1}"),
                    types=tuple(str(_TYPES[(pick[2] + step) % len(_TYPES)]) for step in range(3)),
                    concepts=tuple(f"concept{(pick[3] + step) % _CONCEPTS}" for step in range(10)),
                    files=tuple(f"file{(pick[0] + step) % _FILES}.py" for step in range(5)),
                ),
            )

    def session(self, store: Store, number: int) -> None:
        """Write a session of fifty exchanges with one observation each."""
        project = f"project{number % _PROJECTS}"
        session = store.sessions.save(Session("synthetic", f"session{number}", project=project, cwd=f"/w/{project}"))
        name = f"synthetic/{number}.jsonl"
        source = store.sources.save(Source("synthetic", Path("/") / name, name, 0, 0, 0, 0, b"", b"", session=session))
        store.exchanges.replace(session, source, 0, [self._exchange(ordinal) for ordinal in range(_PER_SESSION)])
        key = max(store.changes.since(store.changes.last() - _PER_SESSION))
        vectors = self._vectors(2 * _PER_SESSION)
        for exchange in range(key - _PER_SESSION + 1, key + 1):
            store.observations.replace(exchange, session, [self._observation()], "bench-1")
            [learned] = store.observations.of_exchange(exchange)
            store.vectors.replace(
                self._model, {item: {0: self._embedded(next(vectors))} for item in (exchange, learned.key)}
            )

    def _embedded(self, vector: bytes) -> Embedding:
        return Embedding(vector, self._random.bytes(int(self._random.integers(*_TOKENS)) * TOKEN_BYTES))

    def _exchange(self, ordinal: int) -> Exchange:
        line, at = 2 * ordinal + 1, self._day()
        turns = (
            Turn(line, Speaker.HUMAN, Kind.PROMPT, self._words(20), at),
            Turn(line + 1, Speaker.ASSISTANT, Kind.PROSE, self._words(100), at, writes=(self._file(),)),
        )
        return Exchange(ordinal, Span(line, line + 1, 0, 0), turns, at, at)

    def _observation(self) -> Observation:
        return Observation(
            _TYPES[int(self._random.integers(len(_TYPES)))],
            self._words(8),
            narrative=self._words(40),
            concepts=tuple(f"concept{number}" for number in self._random.integers(0, _CONCEPTS, size=3)),
            files_modified=(self._file(),),
            evidence=(Evidence(1, 2, "quote"),),
            at=self._day(),
            extractor="bench-1",
        )

    def _words(self, count: int) -> str:
        places: list[int] = np.searchsorted(self._material.shares, self._random.random(count), side="right").tolist()
        return " ".join([self._material.words[place] for place in places])

    def _file(self) -> str:
        return f"/w/src/file{self._random.integers(_FILES)}.py"

    def _day(self) -> int:
        return _START + int(self._random.integers(DAYS)) * DAY

    def _vectors(self, count: int) -> Iterator[bytes]:
        known = self._material.vectors
        near, one, other = (known[self._random.integers(len(known), size=count)] for _ in range(3))
        drawn = near + _SPREAD * (one - other)
        unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return (row.tobytes() for row in unit.astype("<f2"))
