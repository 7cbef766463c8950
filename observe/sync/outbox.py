"""Changes of this archive since they were last sent: raw copies, result files, memories and deletions."""

import io
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import PurePosixPath
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from ...archiver.copies.raw_copy import Copy, RawArchive, write_without
from ...archiver.copies.result_files import ResultFiles
from ...archiver.deletion.suppression import Ownership
from ...archiver.store import Source, Store
from ...archiver.store.source_table import DELETED
from ...archiver.store.sync_table import Ranges, Sent, copy_id, lines_of, owner_of, ranges_of, shown_to
from ...core.deletion import DeletionState
from ...core.errors import CopyDamaged
from .records import CopyPart, DeletionRecord, Record, key_of

PART: Final = 1 << 20
"""Maximum bytes of a copy in one record."""
UNDONE: Final = "undone"
ERASED: Final = "erased"
KEPT: Final = "kept"


class Change(Struct, frozen=True):
    """Change to send. With `replaces`, all earlier records of the key are removed from the segments.

    `sent` describes the state after the change, without the numbers of segments.
    """

    key: str
    sent: Sent
    records: Iterator[Record]
    replaces: bool = False


class Outbox:
    """Changes of the raw copies and the deletions of one archive. The caller holds the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive, own: str) -> None:
        self._store, self._raw, self._own = store, raw, own
        self._ownership = Ownership(store, raw, store.home.key())

    def changes(self) -> Iterator[Change]:
        """Yield the changes since the last run. Damaged copies are left out until they are repaired."""
        yield from self._copies()
        yield from self._deletions()

    def _copies(self) -> Iterator[Change]:
        sent, names = self._store.sync.sent("copy:"), set[str]()
        sources = [source for source in self._store.sources.all() if not owner_of(source.archived)]
        extracted = set(self._store.sources.extracted([source.id or 0 for source in sources]))
        for source in sources:
            copy = Copy(self._raw.root, source.archived)
            if source.id in extracted or not copy.exists():
                continue
            with suppress(CopyDamaged, OSError):
                hidden = self._hidden(source)
                names.add(f"copy:{source.archived}")
                yield from self._copy(source, hidden, sent)
                for name in () if hidden else ResultFiles(source.path, copy).names():
                    archived = f"{PurePosixPath(source.archived).with_suffix('')}/tool-results/{name}"
                    names.add(f"copy:{archived}")
                    yield from self._result_file(archived, sent)
        for key in sent.keys() - names:
            if self._is_gone(key.removeprefix("copy:")):
                yield Change(key, sent[key]._replace(size=-1), iter(()), replaces=True)

    def _is_gone(self, archived: str) -> bool:
        """Return whether a copy was erased, and not merely lost."""
        return not Copy(self._raw.root, archived).exists() and self._store.tombstones.has_deletions(erased=True)

    def _hidden(self, source: Source) -> dict[int, bool]:
        """Return the lines of a copy that are deleted but not erased yet, and whether an exchange begins on each."""
        if DELETED not in source.coverage:
            return {}
        starts = {exchange.span.start_line for exchange in self._ownership.exchanges(source)}
        return {line: line in starts for line in sorted(self._ownership.deleted(source))}

    def _copy(self, source: Source, hidden: Mapping[int, bool], sent: Mapping[str, Sent]) -> Iterator[Change]:
        key = f"copy:{source.archived}"
        before = sent.get(key)
        state = _state(source.sums or (source.size, source.mtime), sorted(hidden))
        if before is not None and before.state == state:
            return
        with self._view(source, hidden) as file:
            continued = before is not None and before.size >= 0 and _digest(file, before.size)[0] == before.digest
            digest, size = _digest(file)
        if before is not None and continued and size == before.size:
            yield Change(key, before._replace(state=state), iter(()))
            return
        version, start = (
            (before.version, before.size) if before and continued else (before.version + 1 if before else 1, 0)
        )
        parts = self._parts(source, hidden, version, start, size)
        yield Change(key, Sent(version, size, state, digest, ()), parts, replaces=before is not None and not continued)

    def _parts(
        self, source: Source, hidden: Mapping[int, bool], version: int, start: int, size: int
    ) -> Iterator[CopyPart]:
        with self._view(source, hidden) as file:
            file.seek(start)
            while start < size or start == size == 0:
                data = file.read(min(PART, size - start))
                yield CopyPart(source.archived, version, start, data, start + len(data) >= size)
                start += len(data)
                if not data:
                    return

    def _view(self, source: Source, hidden: Mapping[int, bool]) -> BinaryIO:
        """Open the content of a copy, with blank lines in place of deleted ones."""
        if not hidden:
            return self._raw.open_raw(source.archived)
        target = io.BytesIO()
        with self._raw.open_raw(source.archived) as file:
            write_without(file, self._raw.root / source.archived, hidden, target, 0)
        target.seek(0)
        return target

    def _result_file(self, archived: str, sent: Mapping[str, Sent]) -> Iterator[Change]:
        key, path = f"copy:{archived}", self._raw.root / archived
        stat, before = path.stat(), sent.get(f"copy:{archived}")
        state = _state(stat.st_size, stat.st_mtime_ns)
        if before is not None and before.state == state:
            return
        data, version = path.read_bytes(), before.version + 1 if before else 1
        parts = (
            CopyPart(archived, version, start, data[start : start + PART], start + PART >= len(data))
            for start in range(0, max(len(data), 1), PART)
        )
        yield Change(
            key, Sent(version, len(data), state, sha256(data).digest(), ()), parts, replaces=before is not None
        )

    def _deletions(self) -> Iterator[Change]:
        sent, sync = self._store.sync.sent("deletion:"), self._store.sync
        foreign = sync.deletions()
        deletions = {deletion.id: deletion for deletion in self._store.tombstones.all()}
        received = {number for deletion in foreign for number in deletion.local}
        lines = sync.deleted_lines()
        self._add_later_lines(lines)
        for number, deletion in deletions.items():
            if number not in received and number in lines:
                state = KEPT if deletion.state is DeletionState.KEPT else ERASED
                shown = {shown_to(self._own, copy): ranges for copy, ranges in lines[number].items()}
                yield from _changed(DeletionRecord("", number, state, shown), sent)
        for key in sent:
            device, _, suffix = key.removeprefix("deletion:").rpartition(":")
            if not device and int(suffix) not in deletions:
                yield from _changed(DeletionRecord("", int(suffix), UNDONE, {}), sent)
        for other in foreign:
            if other.state == UNDONE and not other.local and not other.lines:
                yield from _changed(DeletionRecord(other.device, other.number, UNDONE, {}), sent)

    def _add_later_lines(self, lines: dict[int, dict[str, Ranges]]) -> None:
        """Add the lines of copies that arrived after their content was deleted here."""
        for source in self._store.sources.all():
            if not owner_of(source.archived) or DELETED not in source.coverage:
                continue
            copy = copy_id(source.archived)
            recorded = {line for ranges in lines.values() for line in lines_of(ranges.get(copy, []))}
            with suppress(CopyDamaged):
                hashes = [(line, value) for line, value in self._ownership.hashes(source) if line not in recorded]
                deletions = self._store.tombstones.deletions_of({value for _, value in hashes})
                for number in set(deletions.values()):
                    later = {line for line, value in hashes if deletions.get(value) == number}
                    ranges = lines.setdefault(number, {})
                    ranges[copy] = ranges_of(later.union(lines_of(ranges.get(copy, []))))


def _changed(record: DeletionRecord, sent: Mapping[str, Sent]) -> Iterator[Change]:
    """Yield the change for a deletion unless it was already sent in this state."""
    key, state = key_of(record), _state(record)
    if key not in sent or sent[key].state != state:
        version = sent[key].version + 1 if key in sent else 1
        yield Change(key, Sent(version, 0, state, b"", ()), iter((record,)), replaces=key in sent)


def _state(*values: object) -> bytes:
    return blake2b(msgspec.msgpack.encode(values), digest_size=16).digest()


def _digest(file: BinaryIO, size: int | None = None) -> tuple[bytes, int]:
    """Return the SHA-256 of the first `size` bytes of a file, or of all bytes, and their number."""
    file.seek(0)
    digest, length = sha256(), 0
    while (size is None or length < size) and (data := file.read(PART if size is None else min(PART, size - length))):
        digest.update(data)
        length += len(data)
    return digest.digest(), length
