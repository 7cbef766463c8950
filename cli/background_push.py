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
_RETRY: Final = 900.0
"""Seconds until the next try if the server did not answer."""


class BackgroundPush:
    """Pusher of new entries. Failures are silent: `palaver team status` shows what waits."""

    def __init__(
        self, home: Home, command: Sequence[str] = _COMMAND, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare to push. The first push sends what waits since the last run."""
        self._home, self._command, self._clock = home, command, clock
        self.process: subprocess.Popen[bytes] | None = None
        """Running push, or None."""
        self._is_due, self._not_before = True, clock()

    def note(self, event: str) -> None:
        """Record an event of the archiver. Indexed entries are pushed with their vectors."""
        self._is_due = self._is_due or event == "indexed"

    def step(self) -> None:
        """Start a push if it is due and this machine belongs to a team."""
        if self.process is not None and self.process.poll() is not None:
            if self.process.returncode:
                self._is_due, self._not_before = True, self._clock() + _RETRY
            self.process = None
        if self.process is None and self._is_due and self._clock() >= self._not_before:
            self._is_due, self._not_before = False, self._clock() + _WAIT
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
