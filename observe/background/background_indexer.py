"""Background indexing in a server, so that the server can reply as soon as documents are queued."""

import logging
import threading
import time
from typing import Final

from ...core.errors import PalaverError
from ...core.home import Home
from .worker_process import IndexWorker

_RETRY: Final = 5.0
"""Seconds between attempts while another process holds the learner's lease."""


class BackgroundIndexer:
    """Indexer that runs index workers in a daemon thread until no work is left.

    The workers end shortly after this process ends.
    """

    def __init__(self, home: Home, model: str | None) -> None:
        """Prepare indexing with an embedding model. If `model` is None, use the packaged model."""
        self._worker, self._model = IndexWorker(home), model
        self._lock = threading.Lock()
        self._wanted = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Index all queued content in the background, with a worker that starts after this call."""
        with self._lock:
            self._wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="background-indexer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._is_wanted():
            while self._index():
                pass

    def _is_wanted(self) -> bool:
        with self._lock:
            wanted, self._wanted = self._wanted, False
            if not wanted:
                self._thread = None
        return wanted

    def _index(self) -> bool:
        """Run one worker. Return True if another worker is needed."""
        try:
            self._worker.start(self._model, settle=True)
            result = self._worker.wait()
        except OSError as error:
            result = PalaverError(f"no process can be started: {error}")
        if isinstance(result, PalaverError):
            logging.getLogger(__name__).warning("Background indexing failed: %s", result)
            return False
        if result.left and not result.seq:  # Another process holds the lease.
            time.sleep(_RETRY)
        return result.left
