"""Limits of a reply: its size, and the time in which the whole reply must arrive.

The timeouts of HTTP clients apply to single reads. A server that sends one byte at a time could keep a call open for
hours.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final

from .model_errors import ModelBusy

BYTES_MAX: Final = 32_000_000
"""Maximum size of a reply, far above that of any valid one."""


def limited(chunks: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    """Yield the chunks of a reply. The time limit covers only waiting for chunks, not processing them.

    Raises:
        ModelBusy: The reply is too large, or does not arrive within `seconds`.
    """
    size, waited, remaining = 0, 0.0, iter(chunks)
    while True:
        start = time.monotonic()
        chunk = next(remaining, None)
        waited += time.monotonic() - start
        if chunk is None:
            return
        if waited > seconds:
            raise ModelBusy("the model did not answer in time", maybe_charged=True)
        size += len(chunk)
        if size > BYTES_MAX:
            raise too_large("the reply")
        yield chunk


def too_large(what: str) -> ModelBusy:
    """Return the error for a reply above the maximum size. `what` names the reply."""
    return ModelBusy(f"{what} is larger than {BYTES_MAX // 1_000_000} MB", maybe_charged=True)
