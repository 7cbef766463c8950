"""Waiting times between attempts to call a language model."""

import time
from collections.abc import Callable
from typing import Final

from .model_errors import ModelBusy

_BUSY_MAX: Final = 3
"""Number of consecutive temporary failures after which a run ends."""
_WAIT_MAX: Final = 60.0
"""Maximum seconds that a run waits before a retry."""


class Backoff:
    """Counter of consecutive temporary failures that waits after each of them."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep, self._failures = sleep, 0

    def wait(self, error: ModelBusy, most: float = _WAIT_MAX) -> None:
        """Wait after a failure: as long as the provider requested, or else 2 s, then 4 s.

        Raises:
            ModelBusy: This was the third consecutive failure, or the wait would exceed `most` or 60 seconds.
        """
        self._failures += 1
        seconds = error.after if error.after is not None else 2.0**self._failures
        if self._failures >= _BUSY_MAX or seconds > min(most, _WAIT_MAX):
            raise error
        self._sleep(seconds)

    def reset(self) -> None:
        """Set the number of failures to 0, after a successful call."""
        self._failures = 0
