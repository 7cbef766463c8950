"""Handling of stop signals: Ctrl-C and SIGTERM."""

import signal
from types import FrameType


class StopSignal:
    """Handler that records a stop signal and raises KeyboardInterrupt.

    Python discards an exception that is raised in a callback of a C library or in a destructor. Long-running work
    therefore also calls `check`. A second signal ends the process at once.
    """

    def __init__(self) -> None:
        self._received = False

    def install(self) -> None:
        """Handle Ctrl-C and SIGTERM in this process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop signal was received."""
        if self._received:
            raise KeyboardInterrupt

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self._received = True
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt
