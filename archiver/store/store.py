"""The store: one connection to the database, with an object for each table."""

from collections.abc import Collection, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from ...core.errors import LeaseHeld, StoreCorrupt, StoreError
from ...core.home import Home
from ...core.runtime import Closing
from . import backups as watermark
from .backups import Backups, IdReservation, Integrity
from .change_log import ChangeLog, PublicationTable, VectorTable
from .database import REPAIR_HINT, Database, PathSeal
from .document_table import DocumentFolderTable, DocumentTable, SymbolTable
from .exchange_table import EditTable, ExchangeTable, FileStateTable, ItemTable, RepetitionTable
from .lease_table import BACKUP, InjectionTable, LeaseTable, StageTable, VisitTable
from .ledger_table import LedgerTable, ModelQueue
from .memory_table import MemoryEdgeTable, MemoryEventTable, MemoryTable, MnemonicTable
from .observation_table import ConfirmationTable, ObservationTable, ReplacementTable
from .session_label_table import SessionLabelTable
from .session_list import SessionList
from .session_table import ProjectTable, SessionTable, SummaryTable
from .source_table import ContainerTable, SourceTable
from .subagent_call_table import SubagentCallTable
from .sync_table import SyncTable
from .team_table import TeamTable
from .tombstone_table import DeletedRowTable, TombstoneTable
from .usage_table import UsageTable

VERIFY_BACKUPS: Final = "verify-backups"
"""Stage that verifies the backups."""


class Store(Closing):
    """Database of parsed conversations, observations and memories. Each thread needs its own store."""

    def __init__(self, database: Database) -> None:
        self._database, self._names = database, PathSeal(database)
        self.changes = ChangeLog(database)
        self.sources = SourceTable(database)
        self.containers = ContainerTable(database)
        self.repetitions = RepetitionTable(database)
        self.subagent_calls = SubagentCallTable(database)
        self.sessions = SessionTable(database)
        self.session_list = SessionList(database)
        self.usage = UsageTable(database)
        self.session_labels = SessionLabelTable(database)
        self.items = ItemTable(database)
        self.observations = ObservationTable(database)
        self.confirmations = ConfirmationTable(database)
        self.replacements = ReplacementTable(database)
        self.summaries = SummaryTable(database, self.observations)
        self.exchanges = ExchangeTable(database, self.summaries, self.observations)
        self.edits = EditTable(database)
        self.file_states = FileStateTable(database)
        self.vectors = VectorTable(database, self.changes)
        self.memories = MemoryTable(database)
        self.memory_events = MemoryEventTable(database)
        self.memory_edges = MemoryEdgeTable(database)
        self.mnemonics = MnemonicTable(database)
        self.projects = ProjectTable(database)
        self.visits = VisitTable(database)
        self.injections = InjectionTable(database)
        self.documents = DocumentTable(database)
        self.symbols = SymbolTable(database, self.documents)
        self.document_folders = DocumentFolderTable(database)
        self.tombstones = TombstoneTable(database)
        self.sync = SyncTable(database)
        self.team = TeamTable(database)
        self.deleted_rows = DeletedRowTable(database, self.summaries)
        self.leases = LeaseTable(database)
        self.publications = PublicationTable(database)
        self.integrity = Integrity(database, self.changes)
        self.stages = StageTable(database)
        self.model_queue = ModelQueue(database)
        self.ledger = LedgerTable(database)
        self.reserved_ids = IdReservation(database)
        self.watermark = watermark.Watermark(database, self.changes)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open an existing database, and apply missing changes of the schema. With `read_only`, change no file.

        Raises:
            StoreMissing: The file does not exist or is empty.
            StoreCorrupt: The file is damaged.
            StoreFromFuture: A newer version of Palaver wrote the file.
            StoreOutdated: An earlier version of Palaver wrote the file, and `palaver migrate` must convert it.
            StoreReadOnly: The schema must be changed, and this process cannot write the file.
        """
        opened = Database.open_read_only(path, current=True, read_only=True) if read_only else Database.open(path)
        store = cls(opened)
        store._reconcile()
        store._renew_names()
        return store

    @classmethod
    def of(cls, home: Home) -> Self:
        """Open the existing database of a home, in read-only mode if the home is. See `open`."""
        return cls.open(home.database, read_only=home.read_only)

    @classmethod
    def open_read_only(cls, path: Path, *, current: bool = False, read_only: bool = False) -> Self:
        """Open an existing database for reading, even if its schema is older or newer.

        See `Database.open_read_only`.
        """
        return cls(Database.open_read_only(path, current=current, read_only=read_only))

    @classmethod
    def create(cls, path: Path, *, read_only: bool = False) -> Self:
        """Open a database, or create it. With `read_only`, open an existing database and change no file.

        Raises:
            StoreMissing: The database is missing although archived copies exist, so it must have been lost.
        """
        if read_only:
            return cls.open(path, read_only=True)
        Home(path.parent).check_not_lost()
        return cls.create_anew(path)

    @classmethod
    def create_anew(cls, path: Path) -> Self:
        """Open a database, or create it even if archived copies exist. The caller must then read the copies again.

        Content deleted before the loss of the database stays deleted.
        """
        home = Home(path.parent)
        if not home.has_database:
            watermark.reset(home)
        store = cls(Database.create(path))
        store._reconcile()
        store._renew_names()
        return store

    @property
    def home(self) -> Home:
        """Folder that contains the database."""
        return Home(self._database.path.parent, read_only=self._database.read_only)

    @property
    def schema(self) -> tuple[int, int]:
        """Version of the schema of this database, and the version that this version of Palaver uses."""
        return self._database.schema

    @property
    def is_read_only(self) -> bool:
        """True if the store cannot be written, for example in a home without write permission."""
        return self._database.is_read_only

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit all writes in the block, or none of them. Keep the block short. Do not nest transactions."""
        self._database.refuse_read_only()
        self.reserved_ids.skip_reserved()
        self.watermark.check()
        with self._database.transaction():
            yield
            if self.tombstones.changed:
                self.tombstones.write_file()
            self.reserved_ids.reserve()
        self.watermark.advance()

    def step(self) -> AbstractContextManager[None]:
        """Return a context manager for a savepoint of a transaction.

        If the `with` block fails, only the writes of this block are undone.
        """
        return self._database.step()

    def refuse_unreadable(self, keys: Collection[int] = ()) -> None:
        """Raise `StoreCorrupt` if an earlier read skipped damaged items. With `keys`, check only these items."""
        damaged = self._database.unreadable.intersection(keys) if keys else self._database.unreadable
        if damaged:
            named = ", ".join(map(str, sorted(damaged)[:3]))
            raise StoreCorrupt(
                f"{self._database.path}: items on damaged pages cannot be read, such as {named}", hint=REPAIR_HINT
            )

    def back_up(self) -> None:
        """Make today's backup unless it exists or another process is making it, and verify the earlier backups.

        Success or failure is recorded as the stages `backup` and `verify-backups`.
        """
        backups = Backups(self.home)
        if self.is_read_only or not backups.is_due:
            return
        try:
            with self.leases.hold(BACKUP):
                backups.make(self._database)
        except LeaseHeld:
            return
        except StoreError as problem:
            self.stages.note("backup", [problem])
        except OSError as error:
            self.stages.note("backup", [StoreError(f"{self.home.backups}: {error.strerror or error}")])
        else:
            self.stages.note("backup")
            self.stages.note(VERIFY_BACKUPS, [StoreCorrupt(f"{path}: {damage}") for path, damage in backups.damaged()])

    def replace_backups(self, damaged: Iterable[Path]) -> None:
        """Make a new backup, and set damaged ones aside.

        Raises:
            LeaseHeld: Another process is making a backup.
            StoreError: The backup could not be made. The damaged ones keep their names.
        """
        backups = Backups(self.home)
        with self.leases.hold(BACKUP):
            backups.make(self._database)
            for path in damaged:
                backups.set_aside(path)
        self.stages.note(VERIFY_BACKUPS)

    def close(self) -> None:
        """Close the database. Further calls have no effect."""
        self._database.close()

    def _renew_names(self) -> None:
        if self._database.is_read_only or not self._names.is_outdated():
            return
        with suppress(StoreError), self.transaction():  # If it fails, the next process tries again.
            self._names.renew()

    def _reconcile(self) -> None:
        """Compare the database with the watermark and the tombstone file.

        Record how many committed changes are missing. Merge deletions that only the tombstone file contains.
        """
        try:
            if not self._database.read_only:
                with suppress(StoreCorrupt):  # A damaged change log must not prevent searching.
                    self._prepare_marks()
            if not self.tombstones.in_sync:
                self._adopt_deletions()
        except StoreError:
            self.close()
            raise

    def _prepare_marks(self) -> None:
        """Compare the database with the watermark. In a home without a raw archive, create both marks first."""
        archive = self.home.archive
        if not archive.is_dir() and not self.is_read_only:
            with suppress(OSError):
                archive.mkdir(mode=0o700)
                self.watermark.advance()
                if self.changes.last():
                    self.reserved_ids.renew()
        self.watermark.check()

    def _adopt_deletions(self) -> None:
        try:
            with self.transaction():
                self.tombstones.synchronise()
        except StoreError:
            # An unwritable tombstone file must not prevent reading, unless the tables lack some of its deletions.
            if not self.tombstones.is_complete:
                raise
