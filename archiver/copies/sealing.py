"""The sealing stage: copies of files that went quiet become small. Nothing that is searched or read changes by it."""

import shutil
import time
from pathlib import Path
from typing import Final, cast

from ...core.clock import now
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Sealing
from ..store import Source, Store
from .forms import UNFINISHED, Copy
from .inspection import Inspection
from .raw import RawArchive, unreadable

QUIET: Final = 7 * 24 * 3600 * 1000
"""Milliseconds without a change after which a file is sealed: people come back to a session within days, and what
they come back to later is unsealed for the time.
"""
BUDGET: Final = 20.0
"""Seconds that one pass spends on sealing; what is left waits for the next."""
_RESTORE: Final = "Run `palaver fsck --repair`: it copies anew what the agent still has. Otherwise restore a backup."
_PACKED: Final = {".zst", ".gz", ".zip"}


class Sealer:
    """Seals what went quiet. Runs under the archiver's lease, after a pass has copied what there is to copy."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def run(self, progress: Progress = silent, budget: float = BUDGET) -> Sealing:
        """Seal the oldest first for `budget` seconds. A copy that cannot be sealed stays as it is and is reported."""
        shutil.rmtree(self._raw.root / UNFINISHED, ignore_errors=True)
        result, end = Sealing(), time.monotonic() + budget
        waiting, inspection = self._waiting(), Inspection(self._store, self._raw)
        for done, source in enumerate(waiting):
            if time.monotonic() > end:
                result.waiting = len(waiting) - done
                break
            progress(done, len(waiting))
            self._seal(source, inspection, result)
        else:
            progress(len(waiting), len(waiting))
        return result

    def _waiting(self) -> list[Source]:
        """Sources that are quiet and still have a plain copy. A time that lies ahead is not quiet."""
        quiet, damaged = (now() - QUIET) * 10**6, {name for name, _ in self._store.sources.faulty()}
        sources = [each for each in self._store.sources.all() if each.mtime < quiet and each.archived not in damaged]
        return sorted(filter(self._is_plain, sources), key=lambda source: source.mtime)

    def _is_plain(self, source: Source) -> bool:
        copy = Copy(self._raw.root, source.archived)
        return copy.plain.suffix not in _PACKED and copy.plain.is_file()

    def _seal(self, source: Source, inspection: Inspection, result: Sealing) -> None:
        copy = Copy(self._raw.root, source.archived)
        try:
            if reason := inspection.reason(source):
                inspection.note(cast(int, source.id), reason)
                raise CopyDamaged(copy.plain, reason, hint=_RESTORE)
            before, after = copy.seal()
        except SourceUnreadable as problem:
            result.problems.append(problem)
        except OSError as error:
            result.problems.append(unreadable(Path(error.filename or copy.plain), error))
        else:
            result.sealed += 1
            result.before += before
            result.after += after
