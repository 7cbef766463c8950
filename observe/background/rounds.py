"""Background rounds of a server: observe, embed and publish in a process of its own, until nothing is left.

A server that indexes a folder replies at once; without this, its chunks would have no vectors until the next
`palaver archive`.
"""

import logging
import threading
from typing import Final

from ...core.errors import PalaverError
from ...core.home import Home
from .catching_up import Helper

_AGAIN: Final = 5.0
"""Seconds until the next attempt while another process has the learner's lease."""


class Rounds:
    """Runs one round after the other in a daemon thread. The process of a round ends soon after this one."""

    def __init__(self, home: Home, model: str | None) -> None:
        """`model` is the name of the embedding model; None is the packaged one."""
        self._helper, self._model = Helper(home), model
        self._lock = threading.Lock()
        self._wanted = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Have what waits now done by a round that begins after this call. Return at once."""
        with self._lock:
            self._wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rounds", daemon=True)
                self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait at most `timeout` seconds until nothing is left to do."""
        if (thread := self._thread) is not None:
            thread.join(timeout)

    def _run(self) -> None:
        while self._is_wanted():
            while self._round():
                pass

    def _is_wanted(self) -> bool:
        with self._lock:
            wanted, self._wanted = self._wanted, False
            if not wanted:
                self._thread = None
        return wanted

    def _round(self) -> bool:
        """Run one round. Return whether another is needed."""
        try:
            self._helper.begin(self._model, settle=True)
            ended = self._helper.wait()
        except OSError as error:
            ended = PalaverError(f"no process can be started: {error}")
        if isinstance(ended, PalaverError):
            logging.getLogger(__name__).warning("Background embedding failed: %s", ended)
            return False
        if ended.left and not ended.seq:  # another process has the lease
            threading.Event().wait(_AGAIN)
        return ended.left
