"""Consistency check and repair of a home (`palaver fsck`, `palaver doctor --deep`), and `palaver rebuild`.

The check verifies that the database, the raw copies and the index are intact and consistent. A repair rebuilds
derived data, and copies files again if agents still have them. It never deletes conversations.

`palaver rebuild` rebuilds the index from the database, or the database from the raw copies.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ...archiver.copies.raw_copy import Copy, RawArchive
from ...archiver.copies.verification import CopyVerifier, DamagedCopy, copies_without_row
from ...archiver.deletion.deletions import CopyEraser
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.ingest.ingest import Ingest
from ...archiver.ingest.recovery import Recovery, Rereading
from ...archiver.ingest.transcripts import Transcript
from ...archiver.reading.parsing import Exclusion
from ...archiver.reading.source_reader import IngestFilters
from ...archiver.redaction import Redactor
from ...archiver.store import ARCHIVER, Store
from ...archiver.store.backups import LOSS_HINT, Backups
from ...archiver.store.migration import is_outdated
from ...archiver.store.salvage import memories_in_logs, salvage
from ...archiver.store.tombstone_table import KeyChanged, KeyLost
from ...core.errors import LeaseHeld, SourceUnreadable, StoreCorrupt, StoreError, StoreMissing, StoreOutdated
from ...core.home import Home
from ...core.memory import MemoryState
from ...core.reports import ConsistencyReport, HealthProblem, IngestReport, RebuildReport, many
from ...core.runtime import Reporter, silent
from ...search.index.generation import Generations
from ...search.index.index_check import IndexCheck, IndexDifferences
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from ..pipeline import observe_pending
from .archive_status import OUTDATED

REPAIR: Final = "Run `palaver fsck --repair`."
RECOVER_DATABASE: Final = (
    "Stop Palaver and all agents, then run `palaver fsck --repair`. It saves every readable row and keeps the damaged "
    "file."
)
RECOVER_COPIES: Final = (
    "If an ingest run was interrupted, run `palaver archive`. Otherwise run `palaver rebuild --from-archive`."
)
_NEXT_RUN: Final = "The next `palaver archive` creates them again."
_REPORT: Final = "Please report this. Search and read still work."
_PATIENCE: Final = 30.0
"""Seconds to wait for another ingest process."""


def check_consistency(
    home: Home,
    model: str | None = None,
    exclude: Sequence[str] = (),
    *,
    repair: bool = False,
    report: Reporter = silent,
) -> ConsistencyReport:
    """Verify all stored data, and with `repair` repair the damage where possible. Without `repair`, write nothing.

    The embedding model is not loaded. Folders that match a pattern in `exclude` are omitted when copies are parsed
    again.

    Raises:
        StoreMissing: No archive exists.
        StoreBusy: Another process keeps the database locked.
        LeaseHeld: Another process is ingesting.
        StoreOutdated: The database is intact, but an earlier version of Palaver made it.
        StoreReadOnly: A repair is needed, and the home cannot be written.
        ConfigInvalid: A pattern in `exclude` is invalid.
    """
    exclusion = Exclusion(exclude)
    result = ConsistencyReport(home.root)
    if repair:
        home.check_writable()
    try:
        damage = damage_of(home)
    except StoreMissing as missing:
        has_backups = bool(Backups(home).all())
        if not missing.copies and not has_backups:
            raise
        lost = missing_database(home, missing)
        if not (repair and has_backups):
            result.problems.append(lost)
            return result
        damage = [lost.problem]
    recovery = _RecoveryFiles(home, report)
    if damage and not repair:
        result.problems.append(HealthProblem("database", "; ".join(damage[:3]), RECOVER_DATABASE))
        result.problems.extend(recovery.problems())
        return result
    if damage:
        try:
            result.problems.extend(_salvaged(home, damage[0]))
        except StoreCorrupt as problem:
            result.problems.append(HealthProblem("database", str(problem), problem.hint))
            return result
        if is_outdated(home.database):
            outdated = StoreOutdated(home.database)
            result.problems.append(HealthProblem("database", str(outdated), outdated.hint))
            return result
    with _opened(home, repair=repair) as store:
        check = _ConsistencyCheck(home, store, exclusion, model or DEFAULT_MODEL, result, report, repair=repair)
        if damage:
            check.parse_outdated()
        check.run()
        result.problems.extend(recovery.repaired(store) if repair else recovery.problems())
    result.checked["backups"] = recovery.count
    return result


class _RecoveryFiles:
    """Files that are kept for recovery: the backups, and the file with the issued IDs.

    They are verified before the store is opened, because each write renews the file with the IDs.
    """

    def __init__(self, home: Home, report: Reporter) -> None:
        self._backups = Backups(home)
        self.count = len(self._backups.all())
        report("Backups", 0, self.count)
        self._damaged = list(self._backups.damaged())
        report("Backups", self.count, self.count)
        self._ids = ""
        with suppress(StoreError), Store.open_read_only(home.database, read_only=home.read_only) as store:
            self._ids = store.reserved_ids.damage

    def problems(self) -> Iterator[HealthProblem]:
        """Describe the damage."""
        for path, reason in self._damaged:
            yield HealthProblem("backups", f"{path}: {reason}", f"{REPAIR} It makes a new backup.")
        if self._ids:
            yield HealthProblem("database", self._ids, REPAIR)

    def repaired(self, store: Store) -> Iterator[HealthProblem]:
        """Write the files again, and set damaged backups aside."""
        if self._damaged:
            try:
                store.replace_backups(path for path, _ in self._damaged)
            except (LeaseHeld, StoreError) as problem:
                yield HealthProblem("backups", f"no new backup could be made: {problem}", problem.hint)
            else:
                for path, reason in self._damaged:
                    remedy = "A new backup was made. The damaged one is kept in the same folder."
                    yield HealthProblem("backups", f"{path}: {reason}", remedy, repaired=True)
        if self._ids:
            store.reserved_ids.renew()
            yield HealthProblem("database", self._ids, "", repaired=True)


@contextmanager
def _opened(home: Home, *, repair: bool) -> Generator[Store]:
    """Open the store while no other process ingests. Without `repair`, the store is read-only."""
    if repair:
        with Store.of(home) as store, store.leases.hold(ARCHIVER, _PATIENCE):
            yield store
        return
    store = Store.open_read_only(home.database, current=True, read_only=home.read_only)
    with store, store.leases.keep_free(ARCHIVER, _PATIENCE):
        yield store


def damage_of(home: Home) -> list[str]:
    """Return the database damage that SQLite finds, without writing to the database. Raises `StoreMissing`."""
    try:
        with Store.open_read_only(home.database, read_only=home.read_only) as store:
            return store.integrity.damage()
    except StoreCorrupt as problem:
        return [str(problem)]


def missing_database(home: Home, missing: StoreMissing) -> HealthProblem:
    """Return the problem that the database is missing although raw copies or backups exist."""
    problem = f"{home.database} is missing, but {'raw copies' if missing.copies else 'backups'} exist"
    if Backups(home).all():
        remedy = "Run `palaver fsck --repair` to restore it from the backups."
    else:
        remedy = f"{missing.hint} This restores conversations but not memories. Deleted items stay deleted."
    return HealthProblem("database", problem, remedy)


def _salvaged(home: Home, damage: str) -> Iterator[HealthProblem]:
    """Replace a damaged database with a database of all readable rows, and report unreadable rows."""
    done = salvage(home)
    kept = f" The damaged file is {done.kept}." if done.kept.exists() else ""
    remedy = f"{many(done.rows, 'row was', 'rows were')} saved.{kept}"
    yield HealthProblem("database", damage, remedy, repaired=True)
    if done.restored:
        counts = ", ".join(f"{count:,} of {table}" for table, count in done.restored.items())
        yield HealthProblem(
            "database", f"rows that were unreadable were restored from a backup: {counts}", "", repaired=True
        )
    if done.unverified:
        subject = f"{_memory_ids(done.unverified)} were on a damaged page"
        problem = f"{subject}. Their content is intact, but other fields may be wrong"
        yield HealthProblem("memories", problem, "Check them with `palaver show`.", repaired=True)
    if done.unknown_losses:
        problem = (
            "memories stored after the newest backup may be lost, because their table and its index cannot be read"
        )
        yield HealthProblem("memories", problem, f"Look for them in {done.kept}." if kept else "Store them again.")
    if done.lost:
        problem = f"{_memory_ids(done.lost)} could not be read, and no backup has a readable copy"
        yield HealthProblem("memories", problem, "Restore them from a backup of your own, if you have one.")


def _memory_ids(memories: Sequence[int]) -> str:
    return ", ".join(f"mem_{key}" for key in memories)


class _ConsistencyCheck:
    """Checks of one open store. The caller must hold the archiver's lease."""

    def __init__(
        self,
        home: Home,
        store: Store,
        exclusion: Exclusion,
        model: str,
        result: ConsistencyReport,
        report: Reporter,
        *,
        repair: bool,
    ) -> None:
        # Without `repair`, a missing key must not be created.
        self._home = home if repair else replace(home, read_only=True)
        self._store, self._exclusion, self._model = store, exclusion, model
        self._result, self._report, self._repair = result, report, repair
        self._raw = RawArchive(home.archive)
        self._rows_usable = True
        """True if the rows can be used to verify the copies and the index."""

    def run(self) -> None:
        """Run all checks. The checks of copies and index are skipped if the rows are unusable."""
        for check in (self._deletions, self._database, self._parsed, self._learned, self._memories):
            self._result.problems.extend(check())
        for check in (self._copies, self._index) if self._rows_usable else ():
            self._result.problems.extend(check())

    def parse_outdated(self) -> IngestReport:
        """Parse copies with outdated rows again."""
        key = self._home.key()
        filters = IngestFilters(self._home.root, Redactor(key), self._exclusion, SuppressionList(self._store, key))
        tally = IngestReport()
        Rereading(self._store, self._raw, filters).run(tally, partial(self._report, "Reading"), float("inf"))
        return tally

    def _deletions(self) -> Iterator[HealthProblem]:
        """Check that deleted items are still recognised: the key, the tombstones, and the file `archive/.forgotten`."""
        tombstones = self._store.tombstones
        try:
            tombstones.check_key(self._home.key())
        except KeyChanged as changed:
            yield self._accepted_key(changed)
        except KeyLost as lost:
            self._rows_usable = False
            yield HealthProblem("deletions", str(lost), lost.hint)
        if tombstones.damage:
            yield self._repaired("deletions", tombstones.damage, tombstones.acknowledge_damage)
        if tombstones.differs_from_file():
            problem = "archive/.forgotten, which records deletions, is damaged or differs from the database"
            yield self._repaired("deletions", problem, tombstones.rewrite_file)

    def _accepted_key(self, changed: KeyChanged) -> HealthProblem:
        if self._repair:
            with self._store.transaction():
                self._store.tombstones.accept_key(self._home.key())
                self._store.sources.outdate()
        return HealthProblem("key", str(changed), _NEXT_RUN if self._repair else changed.hint, repaired=self._repair)

    def _database(self) -> Iterator[HealthProblem]:
        integrity, watermark = self._store.integrity, self._store.watermark
        if loss := watermark.loss:
            if self._repair:
                yield from self._restored_memories()
            yield self._repaired("database", loss, watermark.accept, LOSS_HINT)
        for table, count in integrity.dangling().items():
            verb = "refers" if count == 1 else "refer"
            problem = f"{many(count, 'row')} of {table} {verb} to rows that do not exist"
            yield HealthProblem("database", problem, _REPORT)
        if empty := integrity.without_content():
            problem = f"{many(len(empty), 'item is', 'items are')} empty"
            yield self._repaired("database", problem, lambda: integrity.remove(empty))

    def _restored_memories(self) -> Iterator[HealthProblem]:
        """Restore, under new IDs, memories that exist only in a saved write-ahead log."""
        hashes = {stored.memory.content_hash for stored in self._store.memories.all()}
        with self._store.transaction():
            restored = [
                self._store.memories.insert(stored.memory, stored.created)
                for stored in memories_in_logs(self._home)
                if stored.state is MemoryState.ACTIVE
                and not stored.memory.path
                and stored.memory.content_hash not in hashes
            ]
        if restored:
            problem = f"{many(len(restored), 'memory was', 'memories were')} only in the damaged write-ahead log"
            yield HealthProblem("memories", problem, f"Stored again as {_memory_ids(restored)}.", repaired=True)

    def _parsed(self) -> Iterator[HealthProblem]:
        """Check that rows account for every line of each copy. A repair parses incomplete copies again."""
        wrong = self._store.integrity.unreadable_sources() or self._store.integrity.outside_source()
        self._result.checked["sources"] = len(self._store.sources.all()) if not wrong else 0
        if not wrong:
            return
        problem = f"{many(len(wrong), 'copy does', 'copies do')} not match the lines parsed from them"
        if not self._repair:
            self._rows_usable = False
            yield HealthProblem("database", problem, REPAIR)
            return
        with self._store.transaction():
            self._store.integrity.reread(wrong)
        tally = self.parse_outdated()
        left = self._store.integrity.unreadable_sources() | self._store.integrity.outside_source()
        for unread in tally.problems:
            yield HealthProblem("copies", str(unread), unread.hint or "Restore this copy from a backup.")
        yield HealthProblem("database", problem, _REPORT if left else "", repaired=not left)

    def _learned(self) -> Iterator[HealthProblem]:
        integrity = self._store.integrity
        unproven, damaged = integrity.without_evidence(), integrity.damaged_vectors()
        if unproven:
            self._rows_usable &= self._repair
            have = many(len(unproven), "observation has", "observations have")
            problem = f"{have} evidence that does not occur in the copies"
            yield self._repaired("observations", problem, lambda: integrity.delete_observations(unproven), _NEXT_RUN)
        if damaged:
            have = many(len(damaged), "vector has", "vectors have")
            yield self._repaired("vectors", f"{have} the wrong size", lambda: integrity.reembed(damaged), _NEXT_RUN)

    def _memories(self) -> Iterator[HealthProblem]:
        if wrong := self._store.integrity.count_wrong_tags():
            problem = f"{many(wrong, 'tag differs', 'tags differ')} between the memories and the table of tags"
            yield self._repaired("memories", problem, self._store.integrity.rebuild_tags)

    def _copies(self) -> Iterator[HealthProblem]:
        verifier = CopyVerifier(self._store, self._raw)
        self._result.checked["copies"] = len(self._store.sources.all())
        for damaged in verifier.check_all(partial(self._report, "Copies")):
            yield self._damaged_copy(damaged, verifier)
        if names := copies_without_row(self._raw.root, self._store):
            problem = f"{many(len(names), 'copy is', 'copies are')} not in the database, such as {names[0]}"
            yield HealthProblem("copies", problem, RECOVER_COPIES)

    def _damaged_copy(self, damaged: DamagedCopy, verifier: CopyVerifier) -> HealthProblem:
        path, copy = self._raw.root / damaged.source.archived, Copy(self._raw.root, damaged.source.archived)
        problem = f"{path}: {damaged.reason}"
        if not self._repair:
            return HealthProblem("copies", problem, f"{REPAIR} It copies the agent's file again if it still exists.")
        try:
            if verifier.repair(damaged.source):
                remedy = "The damaged file was kept beside the new copy." if copy.damaged_files() else ""
                return HealthProblem("copies", problem, remedy, repaired=True)
        except (SourceUnreadable, OSError):
            pass
        remedy = f"Restore {path} from a backup, if there is one. `palaver read` shows the readable lines."
        return HealthProblem("copies", problem, remedy)

    def _index(self) -> Iterator[HealthProblem]:
        generations = Generations(self._home.index, read_only=self._home.read_only)
        differences = self._index_differences(generations)
        yield from self._wrong_vectors(differences)
        wrong = left = differences.differences
        if generations.is_outdated and self._repair:
            wrong = ["written by another version of Palaver"]
        elif generations.is_outdated:
            self._result.notes["index"] = OUTDATED
        if wrong and self._repair:
            # Vectors are read from rows, so the model is not needed.
            Indexer(self._store, generations, load(self._model)).rebuild(partial(self._report, "Rebuilding"), _PATIENCE)
            after = self._index_differences(generations)
            left = after.differences
            yield from self._wrong_vectors(after)
        for problem in wrong:
            remedy = _REPORT if self._repair else REPAIR
            yield HealthProblem("index", problem, remedy if left else "", repaired=not left)

    def _index_differences(self, generations: Generations) -> IndexDifferences:
        differences = IndexCheck(self._store, generations).run(partial(self._report, "Index"))
        self._result.checked["entries"], self._result.checked["vectors"] = differences.entries, differences.vectors
        return differences

    def _wrong_vectors(self, differences: IndexDifferences) -> Iterator[HealthProblem]:
        if wrong := differences.mismatched_vectors:
            problem = f"{many(len(wrong), 'entry has', 'entries have')} vectors of a different text"
            yield self._repaired("vectors", problem, lambda: self._store.integrity.reembed(wrong), _NEXT_RUN)

    def _repaired(self, part: str, problem: str, repair: Callable[[], None], remedy: str = "") -> HealthProblem:
        if not self._repair:
            return HealthProblem(part, problem, REPAIR)
        with self._store.transaction():
            repair()
        return HealthProblem(part, problem, remedy, repaired=True)


def rebuild_index(home: Home, model: str | None = None, report: Reporter = silent) -> RebuildReport:
    """Rebuild the index from the database, without loading a model.

    Raises `StoreMissing`, `LeaseHeld` and `IndexUnwritable`.
    """
    with Store.of(home) as store:
        return _rebuilt_index(home, store, model, report)


def rebuild_from_archive(
    home: Home,
    transcripts: Iterable[Transcript],
    model: str | None = None,
    report: Reporter = silent,
    exclude: Sequence[str] = (),
) -> RebuildReport:
    """Parse every copy again, including copies without a row, then rebuild the index.

    A missing database is created. `transcripts` are the files that agents still have. They provide the original paths
    of their copies. Files without a copy are not ingested. Valid observations and vectors are kept. The next ingest run
    continues an interrupted rebuild. Folders that match a pattern in `exclude` are omitted.

    Raises:
        StoreCorrupt: The database is damaged. Nothing is changed.
    """
    exclusion = Exclusion(exclude)
    if not home.has_copies:
        home.check()
    damage = damage_of(home) if home.has_database else []
    if damage:
        raise StoreCorrupt(f"{home.database}: {damage[0]}", hint=RECOVER_DATABASE)
    home.make()
    with Store.create_anew(home.database) as store:
        with store.leases.hold(ARCHIVER, _PATIENCE):
            reread, recovered, problems = _parse_all(home, store, exclusion, transcripts, report)
        observe_pending(store, partial(report, "Observing"))
        made = _rebuilt_index(home, store, model, report)
    return RebuildReport(made.generation, made.entries, made.vectors, reread, recovered, problems)


def _parse_all(
    home: Home, store: Store, exclusion: Exclusion, transcripts: Iterable[Transcript], report: Reporter
) -> tuple[int, int, list[HealthProblem]]:
    """Parse all copies. Return the number of re-parsed copies, the number of recovered copies, and the problems."""
    raw, redactor = RawArchive(home.archive), Redactor(home.key())
    filters = IngestFilters(home.root, redactor, exclusion, SuppressionList(store, home.key()))
    eraser = CopyEraser(store, raw)
    eraser.schedule(copies_without_row(raw.root, store))
    second = IngestReport(problems=eraser.finish())
    with store.transaction():
        store.sources.outdate()
    rereading = Rereading(store, raw, filters)
    rereading.run(second, partial(report, "Reading"), float("inf"))
    sources = store.sources.by_path()
    copied = [
        transcript
        for transcript in transcripts
        if transcript.path in sources or _may_have_copy(transcript, home.archive, redactor)
    ]
    ingested = Ingest(store, raw, exclusion).run(copied, partial(report, "Archiving"))
    recovered = Recovery(store, raw, filters).run(partial(report, "Recovering"))
    # A fork may have been ingested before the session that it was forked from.
    rereading.run(recovered, partial(report, "Reading"), float("inf"))
    # A copy that cannot be read is reported by each step.
    problems = list(dict.fromkeys(map(_problem, (*second.problems, *ingested.problems, *recovered.problems))))
    if lost := store.tombstones.lost:
        problem = f"{many(lost, 'deletion was', 'deletions were')} lost, so deleted items are searchable again"
        problems.append(HealthProblem("deletions", problem, "Delete them again with `palaver forget`."))
    return second.reread, recovered.changed, problems


def _may_have_copy(transcript: Transcript, archive: Path, redactor: Redactor) -> bool:
    """Return whether a file may have a copy.

    The result is also True for an unreadable file, so that it is reported. A container counts as copied if copies of
    its agent exist.
    """
    if transcript.container_format is not None:
        return (archive / transcript.container_format.agent).is_dir()
    try:
        recognised = transcript.recognise()
    except OSError:
        return True
    return recognised is not None and Copy(archive, redactor.redact_name(transcript.archived(recognised))).exists()


def _rebuilt_index(home: Home, store: Store, model: str | None, report: Reporter) -> RebuildReport:
    indexer = Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL))
    made = indexer.rebuild(partial(report, "Rebuilding"), _PATIENCE)
    store.stages.note("publish")
    return RebuildReport(made.folder.name, made.manifest.entries, made.manifest.vectors)


def _problem(problem: SourceUnreadable) -> HealthProblem:
    return HealthProblem(
        "copies", str(problem), problem.hint or "The copy was not changed. All other copies were read."
    )
