"""Waiting times between attempts to call a language model."""

import time
from collections.abc import Callable
from typing import Final

from .model_errors import ModelBusy

_BUSY_MAX: Final = 3
"""Consecutive temporary failures that end a run."""
_WAIT_MAX: Final = 60.0
"""Maximum seconds that a run waits before a retry."""


class Backoff:
    """Number of temporary failures in a row, and the wait after each of them."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep, self._failures = sleep, 0

    def wait(self, error: ModelBusy, most: float = _WAIT_MAX) -> None:
        """Wait after a failure: as long as the provider asked, or else twice as long as before.

        Raises:
            ModelBusy: This was the third failure in a row, or the wait would take more than `most` seconds.
        """
        self._failures += 1
        seconds = error.after if error.after is not None else 2.0**self._failures
        if self._failures >= _BUSY_MAX or seconds > min(most, _WAIT_MAX):
            raise error
        self._sleep(seconds)

    def reset(self) -> None:
        """Record that a call succeeded."""
        self._failures = 0
