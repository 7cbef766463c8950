"""Events: what the system tells of changed files. Hints, and nothing depends on them."""

import time
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from .mounts import is_silent
from .scanning import Folder

if TYPE_CHECKING:
    from watchfiles.main import FileChange

_TICK = 1.0
"""Seconds that a wait lasts at most."""
_GATHER_MS = 250
"""Events that come within this time of the first are heard together."""
_STEP_MS = 100
_BACK_OFF = (1.0, 300.0)
"""Seconds until the first, and the longest until any other, attempt to listen again after listening broke off."""


class Heard(Struct, frozen=True):
    """Files and folders that changed. `lost` when more may have changed than was heard of."""

    paths: frozenset[Path] = frozenset()
    lost: bool = False


class Events(Protocol):
    """Where hints come from."""

    @property
    def deaf(self) -> str:
        """Why something may change without a hint at this moment; empty where nothing can."""
        ...

    def follow(self, folders: Collection[Folder]) -> None:
        """Listen at these folders and at no others."""
        ...

    def wait(self) -> Heard:
        """What is heard within a second; returns as soon as anything is."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class FileEvents:
    """The events of the operating system. What cannot be listened to is said to be `deaf`, never an error."""

    def __init__(self, *, poll: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """With `poll` nothing is listened to at all."""
        self._poll, self._clock = poll, clock
        self._folders: frozenset[Folder] = frozenset()
        self._silent = False
        self._heard: Generator[set[FileChange]] | None = None
        self._broken = ""
        self._again, self._delay = 0.0, _BACK_OFF[0]

    @property
    def deaf(self) -> str:
        """See `Events.deaf`."""
        if self._poll:
            return "asked to poll"
        return self._broken or ("a folder on a file system that tells nothing" if self._silent else "")

    def follow(self, folders: Collection[Folder]) -> None:
        """See `Events.follow`."""
        if frozenset(folders) != self._folders:
            self.close()
            self._folders, self._again = frozenset(folders), 0.0

    def wait(self) -> Heard:
        """See `Events.wait`."""
        if self._heard is None and not self._poll and self._folders and self._clock() >= self._again:
            self._listen()
        if self._heard is None:
            time.sleep(_TICK)
            return Heard()
        try:
            changes = next(self._heard)
        # The library tells of a name that is no UTF-8 with an error of its own, and its thread is gone then.
        except (RuntimeError, OSError) as error:
            self._break_off(error)
            return Heard(lost=True)
        mended, self._broken, self._delay = bool(self._broken), "", _BACK_OFF[0]
        return Heard(frozenset(Path(path) for _, path in changes), lost=mended)

    def close(self) -> None:
        """See `Events.close`."""
        if self._heard is not None:
            self._heard.close()
        self._heard = None

    def _listen(self) -> None:
        from watchfiles import watch

        silent = {folder for folder in self._folders if is_silent(folder.path)}
        self._silent = bool(silent)
        paths = [folder.path for folder in self._folders - silent]
        if not paths:
            self._again = self._clock() + _BACK_OFF[1]
            return
        self._heard = watch(
            *paths,
            watch_filter=None,
            debounce=_GATHER_MS,
            step=_STEP_MS,
            rust_timeout=round(_TICK * 1000),
            yield_on_timeout=True,
            force_polling=False,
            # Otherwise it would pass over every folder that cannot be listened to, for whatever reason, in silence.
            ignore_permission_denied=False,
        )

    def _break_off(self, error: Exception) -> None:
        self.close()
        self._broken = f"{type(error).__name__}: {error}"
        self._again = self._clock() + self._delay
        self._delay = min(self._delay * 2, _BACK_OFF[1])
