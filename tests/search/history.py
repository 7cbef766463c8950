"""Builders of small demo archives for search tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.core.query import Filters, Mode, Query
from palaver.core.results import Results
from palaver.search.index.generation import Generation, Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedding import Embedder
from palaver.search.present.hits import Hits
from palaver.search.rank.engine import Engine
from palaver.search.rank.fusion import Event

from .fake_embedder import FakeEmbedder

LINES = 3
"""Lines of an exchange: the prompt, the tool call and the reply."""
MAY_1 = 1_777_593_600_000
LONG = "The pressure cooker whistles when the valve is stuck, so the valve was cleaned with vinegar."
NO_FILTERS = Filters()


@dataclass(frozen=True)
class Said:
    """Content of one exchange that a test archives."""

    prompt: str
    answer: str = ""
    at: int | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def exchange(self, ordinal: int, cwd: str = "") -> Exchange:
        """Return the exchange with its line numbers."""
        line = ordinal * LINES + 1
        turns = (
            Turn(line, Speaker.HUMAN, Kind.PROMPT, self.prompt, self.at),
            Turn(line + 1, Speaker.ASSISTANT, Kind.CALL, "Edit", self.at, reads=self.reads, writes=self.writes),
            Turn(line + 2, Speaker.ASSISTANT, Kind.PROSE, self.answer, self.at),
        )
        kept = tuple(turn for turn in turns if turn.text and (turn.kind is not Kind.CALL or turn.reads or turn.writes))
        return Exchange(ordinal, Span(line, line + LINES - 1, 0, 0), kept, self.at, self.at, cwd)


def learned(
    title: str,
    type: ObservationType = ObservationType.GENERAL,  # noqa: A002
    lines: tuple[int, int] | None = None,
    *,
    concepts: Sequence[str] = (),
    files: Sequence[str] = (),
    at: int | None = None,
) -> Observation:
    """Return an observation with this title."""
    evidence = (Evidence(*lines, "quote"),) if lines else ()
    return Observation(
        type, title, concepts=tuple(concepts), files_modified=tuple(files), evidence=evidence, at=at, extractor="test-1"
    )


@dataclass
class History:
    """Archive and index that a test extends step by step."""

    folder: Path
    embedder: Embedder = field(default_factory=FakeEmbedder)

    def __post_init__(self) -> None:
        self.store = Store.create(self.folder / "palaver.db")
        self.generations = Generations(self.folder / "index")

    def say(self, name: str, *said: Said, project: str = "", cwd: str = "") -> list[int]:
        """Store these exchanges as a session and return their keys."""
        with self.store.transaction():
            number = self.store.sessions.save(Session("test", name, project=project or name, cwd=cwd, title=name))
            known = self.store.sources.by_archived(f"test/{name}.jsonl")
            source = known.id if known and known.id else self.store.sources.save(_source(name, number))
            exchanges = [each.exchange(ordinal, cwd) for ordinal, each in enumerate(said)]
            self.store.exchanges.replace(number, source, 0, exchanges)
        found = self.store.exchanges.load(self.store.items.all_keys()).values()
        mine = sorted((stored.exchange.ordinal, stored.key) for stored in found if stored.source == source)
        return [key for _, key in mine]

    def learn(self, exchange: int, *observations: Observation) -> list[int]:
        """Store these observations of an exchange and return their keys."""
        session = self.store.items.load([exchange])[exchange].session
        with self.store.transaction():
            self.store.observations.replace(exchange, session, observations, "test-1")
        return [stored.key for stored in self.store.observations.of_exchange(exchange)]

    def embed(self) -> int:
        """Embed every item."""
        return self._indexer().embed(lambda _done, _total: None)

    def publish(self) -> Generation | None:
        """Publish the next generation."""
        return self._indexer().publish()

    def engine(self, store: Store | None = None) -> Engine:
        """Return a new search engine."""
        return Engine.of(store or self.store, self.generations, self.embedder)

    def search(self, *concepts: str, mode: Mode = Mode.BOTH, limit: int = 50, filters: Filters = NO_FILTERS) -> Results:
        """Search with a new engine and return the results."""
        return Hits(self.store, self.engine()).search(Query(concepts, mode, limit, filters))

    def ids(self, *concepts: str, mode: Mode = Mode.BOTH, filters: Filters = NO_FILTERS) -> list[str]:
        """Search with a new engine and return the IDs of the hits."""
        return [hit.id for hit in self.search(*concepts, mode=mode, filters=filters).hits]

    def _indexer(self) -> Indexer:
        return Indexer(self.store, self.generations, self.embedder)


def keys(events: Sequence[Event]) -> list[int]:
    """Return the keys of these events in order."""
    return [event.key for event in events]


def _source(name: str, session: int) -> Source:
    archived = f"test/{name}.jsonl"
    return Source("test", Path("/") / archived, archived, 0, 0, 0, 0, b"", b"", session=session)
