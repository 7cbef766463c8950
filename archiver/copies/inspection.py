"""Inspection: whether the copies are what was archived, by every byte, and what lies beside them."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from ...core.clock import now
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.home import Home
from ...core.progress import Progress, silent
from ..forget.oblivion import FORGOTTEN
from ..parse.parsing import REPEATED
from ..privacy.masker import Masker
from ..redaction import VERSION, Redactor
from ..store import Source, Store
from .forms import ASIDE, SEALED, UNFINISHED, Copy
from .raw import RawArchive, Stat, matches
from .seekable import Seekable

_PIECE: Final = 1 << 20


class Fault(Struct, frozen=True):
    """A copy that is not what was archived, and why."""

    source: Source
    reason: str


class Inspection:
    """Compares copies with their rows and with the agents' files. Runs under the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._masker = Masker(Redactor(Home(raw.root.parent).key()))
        self._erased = store.tombstones.exist(erased=True)

    def faults(self, progress: Progress = silent) -> Iterator[Fault]:
        """Every copy that is not whole. Reads all of them."""
        sources = self._store.sources.all()
        current = {source.id for source in self._store.sources.by_path().values()}
        for done, source in enumerate(sources):
            progress(done, len(sources))
            reason = self._fault(source, self._raw, compared=source.id in current)
            if source.id is not None:
                self.note(source.id, reason)
            if reason:
                yield Fault(source, reason)
        progress(len(sources), len(sources))

    def fault(self, number: int) -> Fault | None:
        """What is wrong with one copy at this moment; None for nothing, and where there is no such source any more."""
        try:
            source = self._store.sources.load(number)
        except KeyError:
            return None
        current = self._store.sources.at(source.path)
        reason = self._fault(source, self._raw, compared=current is not None and current.id == source.id)
        return Fault(source, reason) if reason else None

    def note(self, number: int, reason: str) -> None:
        """Write down how a source's copy was found."""
        with self._store.transaction():
            self._store.sources.inspected(number, now(), reason)

    def recopy(self, source: Source) -> bool:
        """Copy the agent's file again, when it still is what was archived; the damaged copy is kept beside.

        The damaged one stays in its place until the new one is whole. Raises `SourceUnreadable` and `OSError`.
        """
        if self._may_lack(source) or not self._is_still_there(source):
            return False
        self._raw.remade(source.archived, partial(self._copy, source))
        if source.id is not None:
            self.note(source.id, "")
        return True

    def _copy(self, source: Source, archive: RawArchive) -> None:
        if source.masked:
            archive.copy_masked(source.path, source.archived, self._masker, anew=True)
        else:
            archive.copy(source.path, source.archived)
        if reason := self._fault(source, archive, compared=True):
            raise SourceUnreadable(source.path, f"it cannot be copied anew: {reason}")

    def strays(self) -> list[str]:
        """Copies that belong to no source, by their archive paths."""
        return strays(self._raw.root, self._store)

    def unfinished(self) -> int:
        """How many files were left by processes that were killed while they made one."""
        return sum(1 for path in (self._raw.root / UNFINISHED).rglob("*") if path.is_file())

    def clear(self) -> None:
        """Remove what was left unfinished; nothing was ever kept there."""
        shutil.rmtree(self._raw.root / UNFINISHED, ignore_errors=True)

    def _fault(self, source: Source, raw: RawArchive, *, compared: bool) -> str:
        """What is wrong with a copy in this archive; empty when nothing is."""
        try:
            size = Copy(raw.root, source.archived).size()
            with raw.original(source.archived) as file:
                damaged = list(file.damage()) if isinstance(file, Seekable) else []
                if damaged:
                    return damaged[0].reason
                if isinstance(file, Seekable) and not file.table.digest:
                    return "its table is gone; all lines can still be read"
                if isinstance(file, Seekable) and _digest(file) != file.table.digest:
                    return "its content is not what was sealed"
            if size < source.size:
                return f"{source.size - size} of {source.size} bytes are missing"
            may_lack = self._may_lack(source)
            if not may_lack and not raw.is_intact(source):
                return "it does not begin or end as it did"
            if _lines(source, raw) != source.lines:
                return f"it does not have {source.lines} lines any more"
            if compared and not may_lack and not _equals(source, raw):
                return "it is not what the agent's file says"
        except CopyDamaged as damage:
            return damage.reason
        except FileNotFoundError:
            return "it is gone"
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _may_lack(self, source: Source) -> bool:
        """Whether a copy may have lost lines on purpose, which the agent's file still has."""
        # What a fork repeats may have been erased with the original.
        told = not source.coverage.keys().isdisjoint({FORGOTTEN, REPEATED})
        return self._erased and (told or source.rules != VERSION)

    def _is_still_there(self, source: Source) -> bool:
        """Whether the agent's file begins with all that was archived of it, as far as the row can tell."""
        try:
            with source.path.open("rb") as file:
                return bool(source.head) and matches(source, file)
        except OSError:
            return False


def names(root: Path) -> Iterator[str]:
    """The archive paths of all copies below a folder, sorted; what was set aside or left unfinished is none."""
    found: set[str] = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if Path(folder, name) != root / UNFINISHED]
        inside = Path(folder).relative_to(root)
        told = (name for name in files if ASIDE not in name and (folder != str(root) or not name.startswith(".")))
        found.update((inside / name).as_posix().removesuffix(SEALED) for name in told)
    yield from sorted(found)


def strays(root: Path, store: Store) -> list[str]:
    """Copies below a folder that belong to no source of a store, by their archive paths."""
    found = list(names(root))  # before the rows are asked for: what gets its row meanwhile is none
    known = store.sources.archived_names()
    return [name for name in found if name not in known]


def _lines(source: Source, raw: RawArchive) -> int:
    """The lines in what was read of a copy."""
    lines, left, last = 0, source.parsed, b"\n"
    with raw.open(source.archived) as file:
        while left and (piece := file.read(min(_PIECE, left))):
            lines += piece.count(b"\n")
            left -= len(piece)
            last = piece[-1:]
    return lines + (last != b"\n")


def _equals(source: Source, raw: RawArchive) -> bool:
    """Whether the agent's file, where it is as it was when it was copied, begins with the copy."""
    try:
        stat = Stat.of(source.path)
    except OSError:
        return True
    if not source.head or (stat.inode, stat.mtime, stat.size) != (source.inode, source.mtime, source.size):
        return True
    if source.masked:
        return True
    with source.path.open("rb") as theirs, raw.original(source.archived) as ours:
        return _begins_with(theirs, ours, source.size)


def _begins_with(theirs: BinaryIO, ours: BinaryIO, size: int) -> bool:
    while size:
        block = ours.read(min(_PIECE, size))
        if not block or theirs.read(len(block)) != block:
            return False
        size -= len(block)
    return True


def _digest(file: Seekable) -> bytes:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").digest()
