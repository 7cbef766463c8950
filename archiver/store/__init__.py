"""The store: the one narrow way to the truth. SQL stays inside this package."""

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from .changes import Changes, Entity
from .confirmations import Confirmation, Confirmations
from .containers import Containers
from .database import Database, is_wal_safe, sqlite_version
from .documents import Document, Documents, Queued
from .edits import Edit, Edits
from .exchanges import Exchanges, StoredExchange
from .integrity import Integrity
from .items import Items, StoredItem
from .jobs import MODEL_PREFIX, Batch, DeadJob, Job, Jobs
from .leases import ARCHIVER, LEARNER, WATCHER, Lease, Leases
from .ledger import LedgerRows, Planned
from .memories import Memories
from .memory_edges import MemoryEdges
from .memory_events import MemoryEvents
from .mnemonics import Mirrored, Mnemonics
from .observations import Observations, StoredObservation
from .publications import Publications
from .repetitions import Repetition, Repetitions
from .sessions import Sessions
from .sources import Place, Source, Sources
from .stages import Stages
from .summaries import Summaries
from .tombstones import Forgotten, State, Tombstones
from .vectors import StoredVector, Vectors

__all__ = [
    "ARCHIVER",
    "LEARNER",
    "MODEL_PREFIX",
    "WATCHER",
    "Batch",
    "Confirmation",
    "DeadJob",
    "Document",
    "Edit",
    "Entity",
    "Forgotten",
    "Job",
    "Lease",
    "Mirrored",
    "Place",
    "Planned",
    "Queued",
    "Repetition",
    "Source",
    "State",
    "Store",
    "StoredExchange",
    "StoredItem",
    "StoredObservation",
    "StoredVector",
    "is_wal_safe",
    "sqlite_version",
]


class Store:
    """Everything parsed, learned and remembered. One per process and thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = Changes(database)
        self.sources = Sources(database)
        self.containers = Containers(database)
        self.repetitions = Repetitions(database)
        self.sessions = Sessions(database, self.changes)
        self.items = Items(database)
        self.observations = Observations(database, self.changes)
        self.confirmations = Confirmations(database)
        self.summaries = Summaries(database, self.changes, self.observations)
        self.exchanges = Exchanges(database, self.changes, self.summaries)
        self.edits = Edits(database)
        self.vectors = Vectors(database, self.changes)
        self.memories = Memories(database, self.changes)
        self.memory_events = MemoryEvents(database)
        self.memory_edges = MemoryEdges(database)
        self.mnemonics = Mnemonics(database)
        self.documents = Documents(database, self.changes)
        self.tombstones = Tombstones(database)
        self.leases = Leases(database)
        self.publications = Publications(database)
        self.integrity = Integrity(database, self.changes)
        self.stages = Stages(database)
        self.jobs = Jobs(database)
        self.ledger = LedgerRows(database)

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open the store, making it if there is none."""
        return cls(Database.create(path))

    @classmethod
    def look(cls, path: Path) -> Self:
        """Open a store that exists, to be read only; raises `StoreMissing`. An older schema is left as it is."""
        return cls(Database.look(path))

    @property
    def schema(self) -> tuple[int, int]:
        """How many steps of the schema the file has seen, and how many there are."""
        return self._database.schema

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a store that exists; raises `StoreMissing`."""
        return cls(Database.open(path))

    def transaction(self) -> AbstractContextManager[None]:
        """All writes inside happen together or not at all. Keep it short; do not nest."""
        return self._database.transaction()

    def step(self) -> AbstractContextManager[None]:
        """A part of a transaction that can fail without the rest of it."""
        return self._database.step()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
