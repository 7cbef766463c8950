"""Handle of the index worker process, with which the caller starts it, stops it and reads its result.

Importing this module does not load the libraries for indexing.
"""

import subprocess
import sys
from typing import Final

from msgspec import Struct, field, json

from ...core.errors import PalaverError
from ...core.home import Home
from ...core.report import VerifiedCopies

_MODULE: Final = f"{__package__}.index_worker"


class WorkerResult(Struct, frozen=True):
    """Result of one index worker."""

    observed: int = 0
    embedded: int = 0
    seq: int = 0
    """Sequence number of the last change that the worker processed."""
    lag: int = 0
    """Number of changes that are not in the index."""
    left: bool = False
    """True if the worker stopped before it finished all work."""
    verified: VerifiedCopies = field(default_factory=VerifiedCopies)
    reindexed: bool = False
    """True if an index from another version of Palaver was rebuilt."""


class IndexWorker:
    """Index worker process of one home. It can be started repeatedly, but only one process runs at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """True if a worker was started and its result has not been returned yet."""
        return self._process is not None

    def start(self, model: str | None, *, settle: bool) -> None:
        """Start a worker. Raises `OSError` if the process cannot be started."""
        # Use a separate process group, so that Ctrl-C reaches only the caller. The worker does not inherit locks.
        command = [sys.executable, "-P", "-m", _MODULE, str(self._home.root), model or "", "settle" * settle]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)

    def result(self) -> WorkerResult | PalaverError | None:
        """Return the result or failure of the worker, or None while it runs."""
        return None if self._process is None or self._process.poll() is None else self.wait()

    def wait(self) -> WorkerResult | PalaverError:
        """Wait until the worker ends, and return its result or failure."""
        assert self._process is not None
        process, self._process = self._process, None
        assert process.stdout is not None
        output = process.stdout.read()  # Closing stdin, as `communicate` does, would make the worker stop early.
        process.communicate()
        if process.returncode == 0:
            return json.decode(output, type=WorkerResult)
        reason = output.decode("utf-8", "replace") or f"the index worker exited with status {process.returncode}"
        return PalaverError(reason, hint="See standard error of `palaver watch`.")

    def stop(self) -> None:
        """Kill the worker. The next worker continues the work."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
