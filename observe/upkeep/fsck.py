"""Fsck: whether everything that is kept is whole and agrees, by content, and the repair of what can be repaired.

Repaired is what is derived, or can be copied once more from an agent's file. Nothing else is changed, and nothing is
ever deleted that was said.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ...archiver.copies.raw import RawArchive
from ...archiver.copies.raw_copy import Copy
from ...archiver.copies.verification import CopyVerifier, copies_without_row
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.ingest.rereading import Rereading
from ...archiver.reading.exclusion import Exclusion
from ...archiver.reading.source_reader import IngestFilters
from ...archiver.redaction import Redactor
from ...archiver.store import ARCHIVER, Source, Store
from ...archiver.store.salvage import memories_in_logs, salvage
from ...archiver.store.tombstone_file import KeyChanged, KeyLost
from ...core.amount import many
from ...core.checkup import RESTORE, Checkup, Finding, missing_changes
from ...core.errors import SourceUnreadable, StoreCorrupt, StoreMissing
from ...core.home import Home
from ...core.memory import MemoryState
from ...core.progress import Reporter, silent
from ...core.report import Pass
from ...search.index.generation import Generations
from ...search.index.index_check import IndexCheck, IndexDifferences
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from .status import OUTDATED

REPAIR: Final = "Run `palaver fsck --repair`."
FROM_COPIES: Final = "what was said comes back, memories do not, and what was forgotten stays so."
RECOVER: Final = (
    "End every Palaver and agent, then run `palaver fsck --repair`: it saves every row that can still be read "
    "and keeps the damaged file."
)
TAKE_UP: Final = (
    "If a run was interrupted, run `palaver archive` as before. Otherwise `palaver rebuild --from-archive` reads them."
)
_NEXT: Final = "The next `palaver archive` makes them anew."
_PATIENCE: Final = 30.0
"""Seconds to wait for another process that takes transcripts up."""


def fsck(
    home: Home,
    model: str | None = None,
    exclude: Sequence[str] = (),
    *,
    repair: bool = False,
    report: Reporter = silent,
) -> Checkup:
    """Compare everything, and with `repair` mend what can be. Raises `StoreMissing`, `StoreBusy` and `LeaseHeld`.

    `model` is the one whose vectors an index holds, the packaged one by default; it is not loaded. What is read again
    leaves out the folders in `exclude`, as an archiver does; raises `ConfigInvalid` for a bad pattern.
    """
    exclusion = Exclusion(exclude)
    checkup = Checkup(home.root)
    try:
        damage = damage_of(home)
    except StoreMissing as missing:
        if not missing.copies:
            raise
        remedy = f"{missing.hint.removesuffix('.')}; {FROM_COPIES}"
        checkup.findings.append(Finding("database", f"{home.database} is gone, and the copies are there", remedy))
        return checkup
    if damage and not repair:
        checkup.findings.append(Finding("database", "; ".join(damage[:3]), RECOVER))
        return checkup
    if damage:
        try:
            checkup.findings.extend(_salvaged(home, damage[0]))
        except StoreCorrupt as problem:
            checkup.findings.append(Finding("database", str(problem), problem.hint))
            return checkup
    with Store.open(home.database) as store, store.leases.hold(ARCHIVER, _PATIENCE):
        checker = _Fsck(home, store, checkup, report, model or DEFAULT_MODEL, exclusion, repair=repair)
        if damage:
            checker.reread()
        checker.run()
    return checkup


def _salvaged(home: Home, damage: str) -> Iterator[Finding]:
    """Replace a damaged database by one of all rows that can be read, and report what became of the others."""
    done = salvage(home)
    yield Finding(
        "database", damage, f"{many(done.rows, 'row')} were saved; the damaged file is {done.kept}.", repaired=True
    )
    if done.restored:
        counts = ", ".join(f"{count:,} of {table}" for table, count in done.restored.items())
        yield Finding("database", f"rows on damaged pages came from a backup: {counts}", "", repaired=True)
    if done.unverified:
        told = f"{_named(done.unverified)} were on a damaged page; their content is whole, other fields may not be"
        yield Finding("memories", told, "Check them with `palaver show`.", repaired=True)
    if done.unnamed:
        problem = "memories stored after the newest backup may be lost: neither their table nor its index can be read"
        yield Finding("memories", problem, f"Look for them in {done.kept}.")
    if done.lost:
        remedy = "Restore them from a backup of your own, if there is one."
        yield Finding("memories", f"{_named(done.lost)} could not be read, and no backup has them", remedy)


def _named(memories: Sequence[int]) -> str:
    return ", ".join(f"mem_{key}" for key in memories)


def damage_of(home: Home) -> list[str]:
    """What SQLite finds wrong with the database, to which nothing is written; raises `StoreMissing`."""
    try:
        with Store.open_read_only(home.database) as store:
            return store.integrity.damage()
    except StoreCorrupt as problem:
        return [str(problem)]


class _Fsck:
    """One look at everything, part by part."""

    def __init__(
        self,
        home: Home,
        store: Store,
        checkup: Checkup,
        report: Reporter,
        model: str,
        exclusion: Exclusion,
        *,
        repair: bool,
    ) -> None:
        self._home, self._store, self._checkup, self._report = home, store, checkup, report
        self._model, self._exclusion, self._repair = model, exclusion, repair
        self._raw = RawArchive(home.archive)
        self._comparable = True
        """Whether rows can be read, so that copies and index can be held against them."""

    def run(self) -> None:
        for check in (self._forgotten, self._references, self._parsed, self._learned, self._memories):
            self._checkup.findings.extend(check())
        for check in (self._copies, self._index) if self._comparable else ():
            self._checkup.findings.extend(check())

    def _forgotten(self) -> Iterator[Finding]:
        """Check the key of the tombstones, and the file that preserves them without the database."""
        tombstones = self._store.tombstones
        try:
            tombstones.check(self._home.key())
        except KeyChanged as changed:
            yield self._repaired_key(changed)
        except KeyLost as lost:
            self._comparable = False
            yield Finding("forgotten", str(lost), lost.hint)
        if tombstones.damage:
            yield self._mended("forgotten", tombstones.damage, tombstones.acknowledge_damage)
        if tombstones.differs_from_file():
            problem = "the file of deletions in the archive is damaged"
            yield self._mended("forgotten", problem, tombstones.rewrite_file)

    def _repaired_key(self, changed: KeyChanged) -> Finding:
        if self._repair:
            with self._store.transaction():
                self._store.tombstones.accept(self._home.key())
                self._store.sources.outdate()
        return Finding("key", str(changed), _NEXT if self._repair else changed.hint, repaired=self._repair)

    def _references(self) -> Iterator[Finding]:
        integrity, watermark = self._store.integrity, self._store.watermark
        if watermark.missing:
            problem = missing_changes(watermark.missing)
            if self._repair:
                yield from self._restored_memories()
            yield self._mended("database", problem, watermark.accept, RESTORE)
        for table, count in integrity.dangling().items():
            problem = f"{many(count, 'row')} of {table} {'refers' if count == 1 else 'refer'} to what does not exist"
            yield Finding("database", problem, "Please report this; search and read still work.")
        if self._store.reserved_ids.is_damaged:
            problem = f"{self._home.numbers}, which says what ids were given, is damaged"
            yield self._mended("database", problem, self._store.reserved_ids.renew)
        bodiless = integrity.bodiless()
        if bodiless:
            yield self._mended(
                "database", f"{many(len(bodiless), 'item is', 'items are')} empty", lambda: integrity.remove(bodiless)
            )

    def _restored_memories(self) -> Iterator[Finding]:
        """Store the memories again that only a kept write-ahead log has, under new ids."""
        known = {held.memory.content_hash for held in self._store.memories.all()}
        with self._store.transaction():
            found = [
                self._store.memories.insert(held.memory, held.created)
                for held in memories_in_logs(self._home)
                if held.state is MemoryState.ACTIVE and not held.memory.path and held.memory.content_hash not in known
            ]
        if found:
            problem = f"{many(len(found), 'memory was', 'memories were')} in the damaged write-ahead log alone"
            yield Finding("memories", problem, f"Stored again as {_named(found)}.", repaired=True)

    def _parsed(self) -> Iterator[Finding]:
        """What was read of copies; it is read again where it is not what it should be."""
        wrong = self._store.integrity.unparsed() or self._store.integrity.misplaced()
        self._checkup.compared["sources"] = len(self._store.sources.all()) if not wrong else 0
        if not wrong:
            return
        problem = f"what was read of {many(len(wrong), 'copy', 'copies')} does not add up"
        if not self._repair:
            self._comparable = False
            yield Finding("database", problem, REPAIR)
            return
        with self._store.transaction():
            self._store.integrity.reread(wrong)
        tally = self.reread()
        left = self._store.integrity.unparsed() | self._store.integrity.misplaced()
        for unread in tally.problems:
            yield Finding("copies", str(unread), unread.hint or "Restore this copy from a backup.")
        yield Finding("database", problem, "" if not left else "Please report this.", repaired=not left)

    def reread(self) -> Pass:
        """Read the copies again whose rows are outdated."""
        key = self._home.key()
        suppression = SuppressionList(self._store, key)
        filters = IngestFilters(self._home.root, Redactor(key), self._exclusion, suppression)
        tally = Pass()
        Rereading(self._store, self._raw, filters).run(tally, partial(self._report, "Reading"), float("inf"))
        return tally

    def _learned(self) -> Iterator[Finding]:
        integrity = self._store.integrity
        unproven, misshapen = integrity.unproven(), integrity.misshapen()
        if unproven:
            self._comparable &= self._repair
            have = many(len(unproven), "observation has", "observations have")
            problem = f"{have} evidence that is not in the copies"
            yield self._mended("observations", problem, lambda: integrity.unlearn(unproven), _NEXT)
        if misshapen:
            problem = f"the vectors of {many(len(misshapen), 'item')} are of another size than the others"
            yield self._mended("vectors", problem, lambda: integrity.reembed(misshapen), _NEXT)

    def _memories(self) -> Iterator[Finding]:
        wrong = self._store.integrity.mistagged()
        if wrong:
            problem = f"{many(wrong, 'tag is', 'tags are')} not those of their memories"
            yield self._mended("memories", problem, self._store.integrity.retag)

    def _copies(self) -> Iterator[Finding]:
        verifier = CopyVerifier(self._store, self._raw)
        self._checkup.compared["copies"] = len(self._store.sources.all())
        for fault in verifier.check_all(partial(self._report, "Copies")):
            place, copy = self._raw.root / fault.source.archived, Copy(self._raw.root, fault.source.archived)
            repaired = self._repair and _recopied(verifier, fault.source)
            remedy = f"`palaver read` shows what is left of it. Restore {place} from a backup, if there is one."
            if not self._repair:
                remedy = f"{REPAIR} It copies anew what the agent still has."
            elif repaired:
                remedy = "The damaged copy was kept beside it." if copy.damaged_files() else ""
            yield Finding("copies", f"{place}: {fault.reason}", remedy, repaired=repaired)
        if strays := copies_without_row(self._raw.root, self._store):
            problem = f"{many(len(strays), 'copy is', 'copies are')} not in the database, such as {strays[0]}"
            yield Finding("copies", problem, TAKE_UP)

    def _index(self) -> Iterator[Finding]:
        generations = Generations(self._home.index)
        found = self._compared(generations)
        yield from self._embedding(found)
        wrong = left = found.differences
        if generations.is_outdated and self._repair:
            wrong = ["it was made by another version of Palaver"]
        elif generations.is_outdated:
            self._checkup.notes["index"] = OUTDATED
        if wrong and self._repair:
            # No model is loaded: vectors are rows, and nothing is embedded here.
            Indexer(self._store, generations, load(self._model)).rebuild(partial(self._report, "Rebuilding"), _PATIENCE)
            after = self._compared(generations)
            left = after.differences
            yield from self._embedding(after)
        for problem in wrong:
            remedy = "Please report this; search finds it all the same." if self._repair else REPAIR
            yield Finding("index", problem, remedy if left else "", repaired=not left)

    def _compared(self, generations: Generations) -> IndexDifferences:
        found = IndexCheck(self._store, generations).run(partial(self._report, "Index"))
        self._checkup.compared["entries"], self._checkup.compared["vectors"] = found.entries, found.vectors
        return found

    def _embedding(self, found: IndexDifferences) -> Iterator[Finding]:
        """Have items embedded again that lack vectors. An index that cannot be used names no model to check them by."""
        if ill := found.ill_embedded:
            problem = f"{many(len(ill), 'item has', 'items have')} other vectors than of what is said there"
            yield self._mended("vectors", problem, lambda: self._store.integrity.reembed(ill), _NEXT)

    def _mended(self, part: str, problem: str, mend: Callable[[], None], remedy: str = "") -> Finding:
        if not self._repair:
            return Finding(part, problem, REPAIR)
        with self._store.transaction():
            mend()
        return Finding(part, problem, remedy, repaired=True)


def _recopied(verifier: CopyVerifier, source: Source) -> bool:
    try:
        return verifier.repair(source)
    except (SourceUnreadable, OSError):
        return False
