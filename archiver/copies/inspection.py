"""Verification of raw copies by their checksums, and repair of damaged ones."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from ...core.clock import now
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.progress import Progress, silent
from ..files.lines import REPEATED
from ..redaction import VERSION
from ..store import Source, Store
from ..store.source_table import DELETED
from .checksums import verify
from .forms import ASIDE, SEALED, UNFINISHED, Copy
from .raw import RawArchive, Stat, matches
from .seekable import Seekable

_PIECE: Final = 1 << 20
_DIFFERS: Final = "it is not what the agent's file says"


class Fault(Struct, frozen=True):
    """A copy that is not what was archived, and why."""

    source: Source
    reason: str


class Inspection:
    """Verifies copies by their checksums and repairs damaged ones. Runs under the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._erased = store.tombstones.exist(erased=True)

    def faults(self, progress: Progress = silent) -> Iterator[Fault]:
        """Every copy that is not whole. Reads all of them."""
        sources = self._store.sources.all()
        for done, source in enumerate(sources):
            progress(done, len(sources))
            if found := self._noted(source):
                yield found
        progress(len(sources), len(sources))

    def fault(self, number: int) -> Fault | None:
        """What is wrong with one copy at this moment; None for nothing, and where there is no such source any more."""
        try:
            return self._noted(self._store.sources.load(number))
        except KeyError:
            return None

    def is_whole(self, number: int) -> bool | None:
        """Return whether a copy has its recorded checksums; None where it has none. Needs no lease."""
        try:
            source = self._store.sources.load(number)
            return self._damage(source, self._raw) == "" if source.sums else None
        except KeyError:
            return True

    def reason(self, source: Source) -> str:
        """Return what is wrong with a copy; empty for nothing. A whole one without checksums gets them."""
        return self._damage(source, self._raw) if source.sums else self._adopt(source)

    def note(self, number: int, reason: str) -> None:
        """Write down how a source's copy was found."""
        with self._store.transaction():
            self._store.sources.inspected(number, now(), reason)

    def repair(self, source: Source) -> bool:
        """Restore a damaged copy from its own content or the agent's file; return False where neither is whole.

        The damaged one stays in its place until the new one is whole, and is then kept under another name. Raises
        `SourceUnreadable` and `OSError`.
        """
        if not (source.sums and self._recovered(source)):
            if not self._is_still_there(source):
                return False
            self._raw.remade(source.archived, partial(self._copy, source))
        if source.id is not None:
            self.note(source.id, "")
        return True

    def _recovered(self, source: Source) -> bool:
        try:
            self._raw.verify(source)
        except (CopyDamaged, OSError):
            return False
        Copy(self._raw.root, source.archived).recover()
        return True

    def _copy(self, source: Source, archive: RawArchive) -> None:
        copied = archive.copy(source.path, source.archived)
        reason = self._damage(source, archive) if source.sums else self._difference(source, archive)
        if reason:
            raise SourceUnreadable(source.path, f"it cannot be copied anew: {reason}")
        if source.id is not None and not source.sums:
            with self._store.transaction():
                self._store.sources.keep_sums(source.id, copied.sums, compared=True)

    def strays(self) -> list[str]:
        """Copies that belong to no source, by their archive paths."""
        return strays(self._raw.root, self._store)

    def unfinished(self) -> int:
        """How many files were left by processes that were killed while they made one."""
        return sum(1 for path in (self._raw.root / UNFINISHED).rglob("*") if path.is_file())

    def clear(self) -> None:
        """Remove what was left unfinished; nothing was ever kept there."""
        shutil.rmtree(self._raw.root / UNFINISHED, ignore_errors=True)

    def _noted(self, source: Source) -> Fault | None:
        reason = self.reason(source)
        if source.id is not None:
            self.note(source.id, reason)
        return Fault(source, reason) if reason else None

    def _damage(self, source: Source, raw: RawArchive) -> str:
        """Return how a copy differs from its recorded checksums; empty when it does not."""
        try:
            raw.verify(source)
            with raw.original(source.archived) as file:
                return file.form_damage() if isinstance(file, Seekable) else ""
        except (CopyDamaged, OSError) as error:
            return _reason(error)

    def _adopt(self, source: Source) -> str:
        """Compute the first checksums of a copy, unless it is known to be damaged; return what is wrong with it."""
        compared = self._is_current(source)
        if not compared and source.id is not None and self._store.sources.fault(source.id) == _DIFFERS:
            return _DIFFERS  # the agent's file that showed it is gone
        try:
            reason = self._difference(source, self._raw)
            sums = Copy(self._raw.root, source.archived).sums()
        except (CopyDamaged, OSError) as error:
            return _reason(error)
        if not reason and source.id is not None:
            with self._store.transaction():
                self._store.sources.keep_sums(source.id, sums, compared=compared)
        return reason

    def _difference(self, source: Source, raw: RawArchive) -> str:
        """Return how a copy without checksums differs from its row or the agent's file; raises like `raw.open`."""
        size = Copy(raw.root, source.archived).size()
        with raw.original(source.archived) as file:
            for damage in file.damage() if isinstance(file, Seekable) else ():
                return damage.reason
        if size < source.size:
            return f"{source.size - size} of {source.size} bytes are missing"
        if not self._may_lack(source) and not raw.is_intact(source):
            return "it does not begin or end as it did"
        if _lines(source, raw) != source.lines:
            return f"it does not have {source.lines} lines any more"
        if self._is_current(source):
            with source.path.open("rb") as theirs, raw.original(source.archived) as ours:
                return "" if _begins_with(theirs, ours, source.size) else _DIFFERS
        return ""

    def _may_lack(self, source: Source) -> bool:
        """Whether a copy may have lost lines on purpose, which the agent's file still has."""
        # What a fork repeats may have been erased with the original.
        told = not source.coverage.keys().isdisjoint({DELETED, REPEATED})
        return self._erased and (told or source.rules != VERSION)

    def _is_current(self, source: Source) -> bool:
        """Return whether the agent's file is unchanged since it was copied, so that both can be compared."""
        try:
            stat = Stat.of(source.path)
        except OSError:
            return False
        same = (stat.inode, stat.mtime, stat.size) == (source.inode, source.mtime, source.size)
        return same and bool(source.head) and not self._may_lack(source)

    def _is_still_there(self, source: Source) -> bool:
        """Return whether the agent's file begins with all that was archived of it."""
        try:
            with source.path.open("rb") as file:
                if not source.sums:
                    return bool(source.head) and not self._may_lack(source) and matches(source, file)
                verify(file, source.sums, source.path)
        except (CopyDamaged, OSError):
            return False
        return True


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


def _begins_with(theirs: BinaryIO, ours: BinaryIO, size: int) -> bool:
    while size:
        block = ours.read(min(_PIECE, size))
        if not block or theirs.read(len(block)) != block:
            return False
        size -= len(block)
    return True


def _reason(error: CopyDamaged | OSError) -> str:
    """Return what is wrong with a copy that cannot be read."""
    match error:
        case CopyDamaged():
            return error.reason
        case FileNotFoundError():
            return "it is gone"
        case _:
            return error.strerror or str(error)
