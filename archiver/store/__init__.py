"""The store: the one narrow way to the truth. SQL stays inside this package.

A table's module is loaded when it is first asked for: a search needs a third of them, and loading the others would take
it longer than searching.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from ...core.closing import Closing
from ...core.errors import LeaseHeld, StoreCorrupt, StoreError
from ...core.home import Home
from .database import MEND, Database, is_wal_safe, sqlite_version

if TYPE_CHECKING:
    from collections.abc import Collection, Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .changes import Changes, Entity
    from .confirmations import Confirmation, Confirmations
    from .containers import Containers
    from .documents import Document, Documents, Queued
    from .edits import Edit, Edits
    from .exchanges import Exchanges, StoredExchange
    from .forgotten_items import ForgottenItems
    from .integrity import Integrity
    from .items import Items, StoredItem
    from .jobs import Batch, DeadJob, Job, Jobs
    from .leases import ARCHIVER, LEARNER, WATCHER, Lease, Leases
    from .ledger import LedgerRows, Planned
    from .memories import Memories
    from .memory_edges import MemoryEdges
    from .memory_events import MemoryEvents
    from .mnemonics import Mirrored, Mnemonics
    from .numbering import Numbering
    from .observations import MODEL_PREFIX, RENOUNCED, Observations, StoredObservation
    from .projects import Projects
    from .publications import Publications
    from .renunciations import Renunciation, Renunciations
    from .repetitions import Repetition, Repetitions
    from .sessions import Sessions
    from .sources import Place, Source, Sources
    from .stages import Stages
    from .summaries import Summaries
    from .tombstones import Forgotten, State, Tombstones
    from .vectors import Embedded, StoredVector, Vectors
    from .watermark import Watermark

__all__ = [
    "ARCHIVER",
    "LEARNER",
    "MODEL_PREFIX",
    "RENOUNCED",
    "WATCHER",
    "Batch",
    "Confirmation",
    "DeadJob",
    "Document",
    "Edit",
    "Embedded",
    "Entity",
    "Forgotten",
    "Job",
    "Lease",
    "Mirrored",
    "Place",
    "Planned",
    "Queued",
    "Renunciation",
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

_MODULES = {
    "changes": ("Entity",),
    "confirmations": ("Confirmation",),
    "documents": ("Document", "Queued"),
    "edits": ("Edit",),
    "exchanges": ("StoredExchange",),
    "items": ("StoredItem",),
    "jobs": ("Batch", "DeadJob", "Job"),
    "leases": ("ARCHIVER", "LEARNER", "WATCHER", "Lease"),
    "ledger": ("Planned",),
    "mnemonics": ("Mirrored",),
    "observations": ("MODEL_PREFIX", "RENOUNCED", "StoredObservation"),
    "renunciations": ("Renunciation",),
    "repetitions": ("Repetition",),
    "sources": ("Place", "Source"),
    "tombstones": ("Forgotten", "State"),
    "vectors": ("Embedded", "StoredVector"),
}
"""What a module gives to others besides its table."""
_TABLES = {
    "changes": ("Changes",),
    "sources": ("Sources",),
    "containers": ("Containers",),
    "repetitions": ("Repetitions",),
    "sessions": ("Sessions",),
    "items": ("Items",),
    "observations": ("Observations", "changes"),
    "confirmations": ("Confirmations",),
    "summaries": ("Summaries", "observations"),
    "exchanges": ("Exchanges", "summaries", "observations"),
    "edits": ("Edits",),
    "vectors": ("Vectors", "changes"),
    "memories": ("Memories",),
    "memory_events": ("MemoryEvents",),
    "memory_edges": ("MemoryEdges",),
    "mnemonics": ("Mnemonics",),
    "projects": ("Projects",),
    "documents": ("Documents",),
    "renunciations": ("Renunciations",),
    "tombstones": ("Tombstones",),
    "forgotten_items": ("ForgottenItems", "summaries"),
    "leases": ("Leases",),
    "publications": ("Publications",),
    "integrity": ("Integrity", "changes"),
    "stages": ("Stages",),
    "jobs": ("Jobs",),
    "ledger": ("LedgerRows",),
    "numbering": ("Numbering",),
    "watermark": ("Watermark", "changes"),
}
"""Each table's module, the class in it, and the tables that it writes to as well."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Store(Closing):
    """Everything parsed, learned and remembered. One per process and thread."""

    changes: Changes
    sources: Sources
    containers: Containers
    repetitions: Repetitions
    sessions: Sessions
    items: Items
    observations: Observations
    confirmations: Confirmations
    summaries: Summaries
    exchanges: Exchanges
    edits: Edits
    vectors: Vectors
    memories: Memories
    memory_events: MemoryEvents
    memory_edges: MemoryEdges
    mnemonics: Mnemonics
    projects: Projects
    documents: Documents
    renunciations: Renunciations
    tombstones: Tombstones
    forgotten_items: ForgottenItems
    leases: Leases
    publications: Publications
    integrity: Integrity
    stages: Stages
    jobs: Jobs
    ledger: LedgerRows
    numbering: Numbering
    watermark: Watermark

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getattr__(self, table: str) -> Any:
        if table not in _TABLES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {table!r}")
        kind, *others = _TABLES[table]
        module = import_module(f".{table}", __name__)
        made = getattr(module, kind)(self._database, *(getattr(self, other) for other in others))
        setattr(self, table, made)
        return made

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open the store, making it if there is none; raises `StoreMissing` where copies tell that there was one."""
        Home(path.parent).check_not_lost()
        return cls.create_anew(path)

    @classmethod
    def create_anew(cls, path: Path) -> Self:
        """The same, also for copies whose database was lost: who asks for it reads them again.

        What was forgotten before a database was lost stays forgotten.
        """
        home = Home(path.parent)
        if not home.has_database:
            from .watermark import reset

            reset(home)
        store = cls(Database.create(path))
        store.bring_together()
        return store

    @classmethod
    def look(cls, path: Path) -> Self:
        """Open a store that exists, to be read only; raises `StoreMissing`. An older schema is left as it is."""
        return cls(Database.look(path))

    @property
    def schema(self) -> tuple[int, int]:
        """How many steps of the schema the file has seen, and how many there are."""
        return self._database.schema

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written, as in a home that may only be read."""
        return self._database.is_read_only

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a store that exists; raises `StoreMissing`."""
        store = cls(Database.open(path))
        store.bring_together()
        return store

    def refuse_unreadable(self, keys: Collection[int] = ()) -> None:
        """Raise `StoreCorrupt` where a read left out rows on damaged pages; with `keys`, where one of them was."""
        damaged = self._database.unreadable.intersection(keys) if keys else self._database.unreadable
        if damaged:
            named = ", ".join(map(str, sorted(damaged)[:3]))
            raise StoreCorrupt(
                f"{self._database.path}: items on damaged pages cannot be read, such as {named}", hint=MEND
            )

    @property
    def home(self) -> Home:
        """The folder of which this is the database."""
        return Home(self._database.path.parent)

    def _forgets(self) -> bool:
        if self._database.number("SELECT EXISTS (SELECT 1 FROM forgetting)"):
            return True
        try:
            self.home.register.stat()
        except FileNotFoundError:
            return False
        except OSError:
            return True  # whoever reads it says what is wrong
        return True

    def bring_together(self) -> None:
        """Let the tables and the register say the same of what was forgotten; most archives have neither."""
        try:
            with suppress(StoreCorrupt):  # a damaged change log keeps nobody from searching
                self.watermark.check()
            if self._forgets() and not self.tombstones.agree:
                self._take_over()
        except StoreError:
            self.close()
            raise

    def _take_over(self) -> None:
        try:
            with self.transaction():
                self.tombstones.take_over()
        except StoreError:
            # A register that cannot be written keeps nobody from reading, as long as nothing forgotten is only in it.
            if not self.tombstones.know_all:
                raise

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All writes inside happen together or not at all. Keep it short; do not nest."""
        self.numbering.go_on()
        self.watermark.check()
        with self._database.transaction():
            yield
            if "tombstones" in self.__dict__:
                self.tombstones.write_down()
            self.numbering.write_down()
        self.watermark.advance()

    def back_up(self) -> None:
        """Make today's backup if there is none and no other process makes it. Its problems go to the stage `backup`.

        A database without page checksums gets them first.
        """
        from .backups import Backups
        from .leases import BACKUP

        backups = Backups(self.home)
        if self.is_read_only or not backups.is_due:
            return
        try:
            with self.leases.hold(BACKUP):
                if not self._database.has_checksums:
                    self._database.run("VACUUM")
                backups.make(self._database)
        except LeaseHeld:
            return
        except StoreError as problem:
            self.stages.note("backup", [problem])
        except OSError as error:
            self.stages.note("backup", [StoreError(f"{self.home.backups}: {error.strerror or error}")])
        else:
            self.stages.note("backup")

    def step(self) -> AbstractContextManager[None]:
        """A part of a transaction that can fail without the rest of it."""
        return self._database.step()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
