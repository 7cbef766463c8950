"""Records of other devices: raw copies that become sources here, memories, and deletions."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Final

from ...archiver.copies.raw_copy import Copy, RawArchive, new_content
from ...archiver.copies.result_files import is_result_file
from ...archiver.lines import DOCUMENT, SUFFIX, is_blanked
from ...archiver.store import Store
from ...archiver.store.sync_table import ForeignDeletion, ReceivedCopy, copy_id, foreign_path, shown_to
from ...core.agent_names import AGENTS
from ...core.deletion import DeletionRequest, DeletionState
from ...core.errors import InvalidInput, SyncRefused
from ...core.home import Home
from ...core.runtime import sync, sync_path
from ..deletion.deleter import Deleter
from .memory_sync import MemorySync
from .outbox import ERASED, KEPT, UNDONE
from .records import CopyPart, DeletionRecord, MemoryRecord, Record

INCOMING: Final = "incoming"
_PIECE: Final = 1 << 20
_AGAIN: Final = "Run `palaver sync --leave`, then `palaver sync DIR`, which reads everything again."


class Inbox:
    """Reader of the records of other devices. The caller holds the archiver's lease.

    Every step can be repeated: a record that was read before changes nothing.
    """

    def __init__(self, store: Store, raw: RawArchive, folder: Path, memories: MemorySync) -> None:
        self._store, self._raw, self._folder, self._memories = store, raw, folder / INCOMING, memories
        self._copies = store.sync.copies()
        self._swapped = list[Path]()
        """Files that became copies. They are deleted when the database knows the copies."""
        self.changed = Counter[str]()
        """Number of changes by kind of record."""

    def read(self, device: str, records: list[Record], number: int) -> None:
        """Store the records of a segment, and that the segment was read."""
        parts = [record for record in records if isinstance(record, CopyPart)]
        touched = {
            archived: copy
            for part in parts
            if (archived := self._write(device, part))
            for copy in (self._copies[archived],)
        }
        with self._store.transaction():
            for archived, copy in touched.items():
                self._store.sync.save_copy(archived, copy)
                if copy.complete:
                    self._schedule(archived)
            for record in records:
                if isinstance(record, MemoryRecord):
                    self._memories.receive(record)
                    self.changed["memories"] += 1
                elif isinstance(record, DeletionRecord):
                    self._record_deletion(device, record)
            state = self._store.sync.devices()[device]
            self._store.sync.save_device(state._replace(applied=number))
        while self._swapped:
            self._swapped.pop().unlink(missing_ok=True)
        self.changed["copies"] += sum(copy.complete for copy in touched.values())

    def _write(self, device: str, part: CopyPart) -> str:
        """Write a part of a copy to the archive. Return the archive path, or an empty string for a repeated part."""
        archived = foreign_path(device, part.archived)
        if not _is_safe(archived):
            return ""
        before = self._copies.get(archived, ReceivedCopy(0, 0, complete=False))
        continues = part.version == before.version and part.offset == before.size
        if not continues and not (part.version > before.version and part.offset == 0):
            return ""
        copy = Copy(self._raw.root, archived)
        if continues and before.complete:
            self._append(copy, part)
        else:
            incoming = self._folder / copy_id(archived).replace(":", "-")
            _write_at(incoming, part)
            if part.last:
                self._swap(incoming, copy)
        size = part.offset + len(part.data)
        self._copies[archived] = ReceivedCopy(part.version, size, complete=part.last or (continues and before.complete))
        return archived

    def _append(self, copy: Copy, part: CopyPart) -> None:
        copy.decompress()
        _write_at(copy.path, part)

    def _swap(self, incoming: Path, copy: Copy) -> None:
        """Replace a copy with its new version. Keep lines that are blank in it, until they are erased here."""
        copy.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keeps = copy.exists() and copy.path.suffix not in {DOCUMENT, SUFFIX} and not is_result_file(copy.archived)
        with incoming.open("rb") as new, new_content(copy) as target:
            if keeps:
                with copy.open() as old:
                    target.writelines(_merged(old, new))
            else:
                while piece := new.read(_PIECE):
                    target.write(piece)
        self._swapped.append(incoming)

    def _schedule(self, archived: str) -> None:
        """Schedule a copy to be read again. A copy without a row is recovered later."""
        source = self._store.sources.by_archived(archived)
        if source is None:
            return
        copied = self._raw.describe(archived)
        source.size, source.head, source.tail, source.sums = copied.stat.size, copied.head, copied.tail, copied.sums
        source.mtime, source.inode, source.device = copied.stat.mtime, copied.stat.inode, copied.stat.device
        source.rules = ""
        self._store.sources.save(source)

    def _record_deletion(self, device: str, record: DeletionRecord) -> None:
        """Record the state of a deletion. It is carried out when the copies have been read."""
        owner = record.device or device
        known = {(deletion.device, deletion.number): deletion for deletion in self._store.sync.deletions()}
        before = known.get((owner, record.number), ForeignDeletion(owner, record.number, KEPT, {}, ()))
        if before.state == ERASED:
            return
        self._store.sync.save_deletion(before._replace(state=record.state, lines={**before.lines, **record.lines}))


class DeletionFollower:
    """Carries out, undoes and erases the deletions of other devices. It takes the archiver's lease itself."""

    def __init__(self, home: Home, store: Store, deleter: Deleter, own: str) -> None:
        self._root, self._store, self._deleter, self._own = home.archive, store, deleter, own

    def run(self) -> int:
        """Bring this archive into the state of all deletions. Return the number of changes."""
        states = {deletion.id: deletion.state for deletion in self._deleter.history()}
        copies = self._archive_paths()
        return sum(self._follow(deletion, states, copies) for deletion in self._store.sync.deletions())

    def _follow(self, deletion: ForeignDeletion, states: Mapping[int, DeletionState], copies: Mapping[str, str]) -> int:
        if deletion.device == self._own:
            return self._undo_own(deletion, states)
        undone_here = [number for number in deletion.local if number not in states]
        if undone_here and deletion.state != ERASED:
            # The user took the deletion back on this device, which counts for all devices.
            self._save(deletion._replace(state=UNDONE, local=(), lines={}))
            return self._undo(set(deletion.local) - set(undone_here), states)
        if deletion.state == UNDONE:
            self._save(deletion._replace(local=()))
            return self._undo(deletion.local, states)
        erase = deletion.state == ERASED
        local, done = list(deletion.local), 0
        for number in local if erase else ():
            if states.get(number) is DeletionState.KEPT:
                self._deleter.erase(number)
                done += 1
        made = self._delete(list(self._targets(deletion, copies)), erase=erase)
        if made is not None:
            local.append(made)
            done += 1
        if local != list(deletion.local):
            self._save(deletion._replace(local=tuple(local)))
        return done

    def _delete(self, targets: list[str], *, erase: bool) -> int | None:
        """Delete the exchanges on these lines. Return the ID of the deletion, or None if nothing is left to delete."""
        if not targets:
            return None
        request = DeletionRequest(targets=tuple(targets), erase=erase, force=True)
        try:
            preview = self._deleter.preview(request)
            return None if preview.is_empty else self._deleter.delete(request, preview.token).number
        except InvalidInput:  # None of the lines is part of an exchange here.
            return None

    def _undo_own(self, deletion: ForeignDeletion, states: Mapping[int, DeletionState]) -> int:
        """Undo a deletion of this device that the user took back on another device."""
        return self._undo((deletion.number,), states) if deletion.state == UNDONE else 0

    def _undo(self, numbers: set[int] | tuple[int, ...], states: Mapping[int, DeletionState]) -> int:
        undoable = [number for number in numbers if states.get(number) is DeletionState.KEPT]
        for number in undoable:
            self._deleter.undo(number)
        return len(undoable)

    def _save(self, deletion: ForeignDeletion) -> None:
        with self._store.transaction():
            self._store.sync.save_deletion(deletion)

    def _targets(self, deletion: ForeignDeletion, copies: Mapping[str, str]) -> Iterator[str]:
        """Yield the line ranges of a deletion on which exchanges are left. Usually, it was carried out before."""
        for copy, ranges in deletion.lines.items():
            source = self._store.sources.by_archived(copies[copy]) if copy in copies else None
            spans = self._store.exchanges.spans(source.id) if source is not None and source.id is not None else []
            for first, last in ranges:
                if any(span.start_line <= last and span.end_line >= first for _, _, span in spans):
                    yield f"{self._root / copies[copy]}:{first}-{last}"

    def _archive_paths(self) -> dict[str, str]:
        """Return the archive paths of all copies with a row, by the ID of the copy."""
        return {shown_to(self._own, copy_id(name)): name for name in self._store.sources.archived_names()}


def _is_safe(archived: str) -> bool:
    """Return whether an archive path of another device stays inside the archive."""
    parts = archived.split("/")
    return parts[0] in AGENTS and len(parts) > 2 and "\0" not in archived and not {"", ".", ".."}.intersection(parts)


def _write_at(path: Path, part: CopyPart) -> None:
    """Write a part at its offset, durably. What a killed run left after it is cut off."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        if file.seek(0, os.SEEK_END) < part.offset:
            raise SyncRefused(f"continues a transcript whose beginning is missing in {path}", hint=_AGAIN)
        file.seek(part.offset)
        file.write(part.data)
        file.truncate()
        sync(file)
    sync_path(path.parent)


def _merged(old: BinaryIO, new: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a new version. A line that is blank in it but not in the old version is kept."""
    for before, after in zip_longest(old, new, fillvalue=b""):
        if not after:
            return
        is_hidden = (
            len(before) == len(after) and is_blanked(after.rstrip(b"\n")) and not is_blanked(before.rstrip(b"\n"))
        )
        yield before if is_hidden else after
