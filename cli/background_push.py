"""Pushes of the background archiver to the team, each in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from ..core.home import Home

_COMMAND: Final = (sys.executable, "-P", "-m", "palaver", "team", "push", "--json")
_WAIT: Final = 60.0
"""Minimum seconds between two pushes."""
_LONGEST: Final = 600.0
"""Maximum seconds between two pushes, so that deletions by agents are withdrawn and failed pushes are repeated."""


class BackgroundPush:
    """Pusher of new entries. Failures are silent: `palaver team status` shows what waits."""

    def __init__(
        self, home: Home, command: Sequence[str] = _COMMAND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare to push. The first push sends what waits since the last run."""
        self._home, self._command, self._clock = home, command, clock
        self.process: subprocess.Popen[bytes] | None = None
        """Running push, or None."""
        self._is_due, self._last = True, clock() - _WAIT

    def note(self, event: str) -> None:
        """Record an event of the archiver. Indexed entries are pushed with their vectors."""
        self._is_due = self._is_due or event == "indexed"

    def step(self) -> None:
        """Start a push if it is due and this machine belongs to a team."""
        now = self._clock()
        is_running = self.process is not None and self.process.poll() is None
        if not is_running and now >= self._last + (_WAIT if self._is_due else _LONGEST):
            self._is_due, self._last = False, now
            if self._home.team_key.exists():
                # A separate process group, so that Ctrl-C reaches only the archiver.
                self.process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )

    def stop(self) -> None:
        """End a running push. The next one continues."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
