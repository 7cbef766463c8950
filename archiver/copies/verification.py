"""Verification of raw copies by their checksums, repair of damaged copies, and compression of finished copies.

`palaver fsck` verifies all copies in one run. Each hour, the background archiver verifies copies for a few seconds.

A copy is compressed when its file no longer changes. Compressed copies stay searchable and readable.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.conversation import now
from ...core.errors import CopyDamaged, CopyGone, LeaseHeld, SourceUnreadable
from ...core.reports import Compression, VerifiedCopies
from ...core.runtime import Progress, silent
from ..store import ARCHIVER, Source, Store
from .checksums import Checksums, verify
from .raw_copy import COMPRESSED_SUFFIX, DAMAGED_SUFFIX, UNFINISHED, Copy, RawArchive, matches, unreadable
from .result_files import is_result_file

RECHECK: Final = 7 * 24 * 3600 * 1000
"""Milliseconds after which a copy is verified again.

A week leaves time to restore a damaged copy from the agent's file, which some agents delete after 30 days.
"""
RECHECK_DAMAGED: Final = 24 * 3600 * 1000
"""Milliseconds after which a damaged copy is verified again, because the user may have restored a file."""
VERIFY_SECONDS: Final = 10.0
"""Time limit of one background run in seconds. Hourly runs take 28 minutes a week, enough for a few hundred GB."""
_PATIENCE: Final = 5.0
"""Maximum seconds to wait for the archiver's lease."""


class DamagedCopy(Struct, frozen=True):
    """Source whose copy is missing or damaged, with the reason."""

    source: Source
    reason: str


class CopyVerifier:
    """Verification and repair of copies. The caller must hold the archiver's lease, except for `run`.

    A verification writes nothing to a read-only store.
    """

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def run(self, budget: float = VERIFY_SECONDS, clock: Callable[[], float] = time.monotonic) -> VerifiedCopies:
        """Verify and repair due copies for up to `budget` seconds, the least recently verified first.

        The verifier acquires the archiver's lease only for copies that seem damaged or have no checksums yet.
        """
        end, result = clock() + budget, VerifiedCopies()
        for number in self._store.sources.due_for_verification(now(), intact=RECHECK, damaged=RECHECK_DAMAGED):
            if clock() > end:
                break
            self._verify(number, result)
        return result

    def check_all(self, progress: Progress = silent) -> Iterator[DamagedCopy]:
        """Verify every copy, and yield the damaged copies."""
        sources = self._store.sources.all()
        for done, source in enumerate(sources):
            progress(done, len(sources))
            if reason := self.check(source):
                yield DamagedCopy(source, reason)
        progress(len(sources), len(sources))

    def check(self, source: Source) -> str:
        """Verify a copy and record the result.

        Return a description of the damage, or an empty string if the copy is intact.
        """
        reason = self.damage(source)
        self.record(source, reason)
        return reason

    def repair(self, source: Source) -> bool:
        """Restore a damaged copy from its own content or from the agent's file. Return False if neither is complete.

        The damaged copy is kept under another name. Raises `SourceUnreadable` and `OSError`.
        """
        if not self._restore_format(source):
            if not self._is_recoverable(source):
                return False
            self._raw.replace(source.archived, lambda copy: self._copy_again(source, RawArchive(copy.root)))
        self.record(source, "")
        return True

    def _verify(self, number: int, result: VerifiedCopies) -> None:
        result.checked += 1
        source = self._load(number)
        if source is None:
            return
        if source.sums and not self.damage(source):
            self.record(source, "")
            return
        try:
            with self._store.leases.hold(ARCHIVER, _PATIENCE):
                source = self._load(number)  # The row may have changed during verification.
                if source is None or not self.check(source):
                    return
                repaired = False
                with suppress(SourceUnreadable, OSError):
                    repaired = self.repair(source)
        except LeaseHeld:
            return
        result.repaired += repaired
        result.damaged += not repaired

    def _load(self, number: int) -> Source | None:
        try:
            return self._store.sources.load(number)
        except KeyError:
            return None

    def record(self, source: Source, reason: str) -> None:
        """Record the result of a verification, unless the store is read-only. `reason` is empty for an intact copy."""
        if source.id is not None and not self._store.is_read_only:
            with self._store.transaction():
                self._store.sources.record_verification(source.id, now(), reason)

    def damage(self, source: Source) -> str:
        """Verify a copy. Return a description of the damage, or an empty string if the copy is intact.

        If an older version of Palaver made the copy without checksums, compute the checksums.
        """
        copy = Copy(self._raw.root, source.archived)
        try:
            if source.sums:
                self._raw.verify(source)
            else:
                self._add_checksums(source, copy)
            return copy.format_damage()
        except CopyDamaged as error:
            return error.reason
        except FileNotFoundError:
            return CopyGone(copy.path).reason
        except OSError as error:
            return error.strerror or str(error)

    def _add_checksums(self, source: Source, copy: Copy) -> None:
        sums = copy.checksums()
        if (missing := source.size - Checksums(sums).size) > 0:
            raise CopyDamaged(copy.path, f"{missing} of {source.size} bytes are missing")
        source.sums = sums
        if source.id is not None and not self._store.is_read_only:
            with self._store.transaction():
                self._store.sources.save_checksums(source.id, sums)

    def _restore_format(self, source: Source) -> bool:
        """Decompress a copy if only its table is damaged. Return False if its content may be damaged."""
        try:
            if not source.sums:
                return False
            self._raw.verify(source)
        except (CopyDamaged, OSError):
            return False
        copy = Copy(self._raw.root, source.archived)
        if copy.format_damage():
            copy.decompress()
        return True

    def _is_recoverable(self, source: Source) -> bool:
        """Return whether the agent's file begins with all archived bytes."""
        try:
            with source.path.open("rb") as file:
                if source.sums:
                    verify(file, source.sums, source.path)
                    return True
                # Without checksums, lines that were erased on purpose cannot be recognised.
                return (
                    bool(source.head)
                    and not self._store.tombstones.has_deletions(erased=True)
                    and matches(source, file)
                )
        except (CopyDamaged, OSError):
            return False

    def _copy_again(self, source: Source, archive: RawArchive) -> None:
        copied = archive.copy(source.path, source.archived)
        if source.sums:
            archive.verify(source)
        elif source.id is not None:
            with self._store.transaction():
                self._store.sources.save_checksums(source.id, copied.sums)


def archived_names(root: Path) -> list[str]:
    """Return the sorted archive paths of all copies of transcripts below a folder.

    Damaged and temporary files, and result files, are left out.
    """
    names: set[str] = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if Path(folder, name) != root / UNFINISHED]
        inside = Path(folder).relative_to(root)
        copies = (name for name in files if DAMAGED_SUFFIX not in name and (inside.parts or not name.startswith(".")))
        names.update((inside / name).as_posix().removesuffix(COMPRESSED_SUFFIX) for name in copies)
    return sorted(name for name in names if not is_result_file(name))


def copies_without_row(root: Path, store: Store) -> list[str]:
    """Return the archive paths of copies below a folder that have no source in the store."""
    copies = archived_names(root)  # List files before rows. A copy that is archived in between then has its row.
    rows = store.sources.archived_names()
    return [name for name in copies if name not in rows]


QUIET: Final = 7 * 24 * 3600 * 1000
"""Milliseconds since the last line or change after which a copy is compressed.

Most sessions resume within days. A copy that grows later is decompressed, and compressed again after the same time
without changes.
"""
COMPRESS_SECONDS: Final = 20.0
"""Time limit of one run in seconds. The next run continues."""
COPY_AGAIN: Final = (
    "Run `palaver fsck --repair`, which copies the agent's file again if it still exists. Otherwise restore a backup."
)
"""Remedy for a damaged copy."""
_ALREADY_COMPRESSED: Final = {".zst", ".gz", ".zip"}


class CopyCompressor:
    """Compressor of copies that no longer change. The caller must hold the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def run(self, progress: Progress = silent, budget: float = COMPRESS_SECONDS) -> Compression:
        """Compress copies for up to `budget` seconds, oldest first. Copies that cannot be compressed stay unchanged."""
        shutil.rmtree(self._raw.root / UNFINISHED, ignore_errors=True)
        result, end = Compression(), time.monotonic() + budget
        waiting, verifier = self._waiting(), CopyVerifier(self._store, self._raw)
        for done, source in enumerate(waiting):
            if time.monotonic() > end:
                result.waiting = len(waiting) - done
                break
            progress(done, len(waiting))
            self._compress(source, verifier, result)
        else:
            progress(len(waiting), len(waiting))
        return result

    def _waiting(self) -> list[Source]:
        """Return inactive sources whose copies are uncompressed and not known to be damaged, oldest first.

        A source is inactive if its file or its session has not changed for the time `QUIET`. Files that were moved to
        this computer are new, but their sessions are old.
        """
        quiet, damaged = now() - QUIET, {name for name, _ in self._store.sources.damaged()}
        ended = self._store.sources.ended_before(quiet)
        sources = [
            source
            for source in self._store.sources.all()
            if (source.mtime < quiet * 10**6 or source.id in ended) and source.archived not in damaged
        ]
        return sorted(filter(self._is_uncompressed, sources), key=lambda source: source.mtime)

    def _is_uncompressed(self, source: Source) -> bool:
        path = Copy(self._raw.root, source.archived).path
        return path.suffix not in _ALREADY_COMPRESSED and path.is_file()

    def _compress(self, source: Source, verifier: CopyVerifier, result: Compression) -> None:
        copy = Copy(self._raw.root, source.archived)
        try:
            if reason := verifier.damage(source):
                verifier.record(source, reason)
                raise CopyDamaged(copy.path, reason, hint=COPY_AGAIN)
            before, after = copy.compress()
        except SourceUnreadable as problem:
            result.problems.append(problem)
        except OSError as error:
            result.problems.append(unreadable(Path(error.filename or copy.path), error))
        else:
            result.compressed += 1
            result.before += before
            result.after += after
