"""Sweeping: copies compared with what was archived, a little at a time; damage is found while it can be mended."""

import time
from collections.abc import Callable
from typing import Final

from ...core.clock import now
from ...core.errors import LeaseHeld, SourceUnreadable
from ...core.report import Swept
from ..store import ARCHIVER, Store
from .inspection import Fault, Inspection
from .raw import RawArchive

AGAIN: Final = 7 * 24 * 3600 * 1000
"""Milliseconds after which a copy is compared again: agents delete their files after 30 days."""
_STILL_FAULTY: Final = 24 * 3600 * 1000
"""The same for one that was damaged then: somebody may have mended it, and its agent's file may be there again."""
BUDGET: Final = 10.0
"""Seconds that one sweep takes: 28 minutes a week, in which some hundred GB can be read."""
_PATIENCE: Final = 5.0
"""Seconds to wait for another process that archives."""


class Sweeper:
    """Reads without any lease; only what looks damaged is looked at again, and mended, under the archiver's."""

    def __init__(self, store: Store, raw: RawArchive, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds and never goes back."""
        self._store, self._raw, self._clock = store, raw, clock

    def run(self, budget: float = BUDGET) -> Swept:
        """Compare those first that were compared longest ago. Can be interrupted at any time."""
        end, result = self._clock() + budget, Swept()
        for number in self._store.sources.to_inspect(now() - AGAIN, faulty=now() - _STILL_FAULTY):
            if self._clock() > end:
                break
            self._sweep(number, result)
        return result

    def _sweep(self, number: int, result: Swept) -> None:
        inspection = Inspection(self._store, self._raw)
        result.compared += 1
        if inspection.is_whole(number):
            inspection.note(number, "")
            return
        try:
            with self._store.leases.hold(ARCHIVER, _PATIENCE):
                found = inspection.fault(number)
                repaired = found is not None and self._mend(inspection, found)
        except LeaseHeld:
            return
        result.repaired += repaired
        result.damaged += found is not None and not repaired

    def _mend(self, inspection: Inspection, found: Fault) -> bool:
        """Whether it could be copied anew, because the agent still has its file."""
        try:
            return inspection.repair(found.source)
        except (SourceUnreadable, OSError):
            return False
