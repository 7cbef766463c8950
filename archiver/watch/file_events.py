"""Events of the operating system for changed files.

Some changes cause no event. A regular scan finds these changes.
"""

import time
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .network_mounts import is_network_mount
from .transcript_scan import WatchedFolder

if TYPE_CHECKING:
    from watchfiles.main import FileChange

_WAIT: Final = 1.0
"""Maximum seconds of one wait."""
_DEBOUNCE_MS: Final = 250
_STEP_MS: Final = 100
_RETRY: Final = 60.0
"""Seconds between attempts to listen after a failure."""


class Changes(Struct, frozen=True):
    """Changed files and folders. `lost` is true if other paths may have changed too."""

    paths: frozenset[Path] = frozenset()
    lost: bool = False


class FileEvents:
    """Listener for file events of the operating system.

    Some folders, for example on network file systems, send no events. If a folder is of this kind, `may_miss_changes`
    is true.
    """

    def __init__(
        self, *, poll: bool = False, clock: Callable[[], float] = time.monotonic, seconds: float = _WAIT
    ) -> None:
        """Prepare to listen for events, unless `poll` is true. `seconds` is the maximum time of one wait."""
        self._poll, self._clock, self._seconds = poll, clock, seconds
        self._folders: frozenset[WatchedFolder] = frozenset()
        self._events: Generator[set[FileChange]] | None = None
        self._on_network = self._failed = False
        self._retry_at = 0.0

    @property
    def may_miss_changes(self) -> bool:
        """True if changes may happen without an event: while polling, after a failure, or on a network file system."""
        return self._poll or self._failed or self._on_network

    def follow(self, folders: Collection[WatchedFolder]) -> None:
        """Listen for events in these folders, and stop listening in all other folders."""
        if frozenset(folders) != self._folders:
            self.close()
            self._folders, self._retry_at = frozenset(folders), 0.0

    def wait(self) -> Changes:
        """Wait for changes, by default for up to one second."""
        if self._events is None and not self._poll and self._clock() >= self._retry_at:
            self._listen()
        if self._events is None:
            time.sleep(self._seconds)
            return Changes()
        try:
            changes = next(self._events)
        # The library also raises these errors for names that are not UTF-8. Its thread has then ended.
        except (RuntimeError, OSError):
            self.close()
            self._failed, self._retry_at = True, self._clock() + _RETRY
            return Changes(lost=True)
        self._failed = False
        return Changes(frozenset(Path(path) for _, path in changes))

    def close(self) -> None:
        """Stop listening."""
        if self._events is not None:
            self._events.close()
        self._events = None

    def _listen(self) -> None:
        from watchfiles import watch

        local = [folder.path for folder in self._folders if not is_network_mount(folder.path)]
        self._on_network = len(local) < len(self._folders)
        if not local:
            self._retry_at = self._clock() + _RETRY
            return
        self._events = watch(
            *local,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            rust_timeout=round(self._seconds * 1000),
            yield_on_timeout=True,
            force_polling=False,
            # Without this setting, the library silently skips every folder that it cannot listen to.
            ignore_permission_denied=False,
        )
