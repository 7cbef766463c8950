"""Compression of raw copies whose files no longer change. Compressed copies stay searchable and readable."""

import shutil
import time
from pathlib import Path
from typing import Final

from ...core.clock import now
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Compression
from ..store import Source, Store
from .copy_verification import CopyVerifier
from .raw import RawArchive, unreadable
from .raw_copy import UNFINISHED, Copy

QUIET: Final = 7 * 24 * 3600 * 1000
"""Milliseconds without changes after which a copy is compressed.

Most sessions resume within days. A copy that grows later is decompressed, and compressed again after the same time
without changes.
"""
BUDGET: Final = 20.0
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

    def run(self, progress: Progress = silent, budget: float = BUDGET) -> Compression:
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
        """Return inactive sources whose copies are uncompressed and not known to be damaged, oldest first."""
        quiet, damaged = (now() - QUIET) * 10**6, {name for name, _ in self._store.sources.damaged()}
        sources = [each for each in self._store.sources.all() if each.mtime < quiet and each.archived not in damaged]
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
