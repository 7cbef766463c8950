"""HTTP replies of language model servers: errors by status, limits, retry delays, and loopback addresses.

The timeouts of HTTP clients apply to single reads. A server that sends one byte at a time could keep a call open for
hours. Therefore, the size and the time of the whole reply are limited.

Requests to addresses of this machine must not go through a proxy.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from .provider import ExtractionError, ModelBusy, ModelRefused, RequestRefused

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


TIMEOUT: Final = 180.0
"""Maximum seconds for the answer of a model."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_ADDRESS_MAX: Final = 200
_PERMANENT: Final = {401, 402, 403, 404}
_TEMPORARY: Final = {408, 409, 425, 429}
_NOT_IMPLEMENTED: Final = 501
_HINTS: Final = {
    401: "Check {key}, then run the command again.",
    404: "Check llm_model and llm_url in config.toml, then run the command again.",
}


def error_of(
    status: int, message: str, headers: Mapping[str, str], *, unpaid: bool = False, key: str = ""
) -> ExtractionError:
    """Return the error for the status of a response.

    `headers` has names in lower case. `unpaid` is True if the provider reported missing credit. `key` is the
    environment variable with the API key.
    """
    if status in _REDIRECTS:
        target = headers.get("location", "").partition("?")[0][:_ADDRESS_MAX]
        hint = "If you trust this address, set llm_url to it in config.toml."
        return ModelRefused(f"llm_url redirects to {target or 'no address'}", status, hint=hint)
    if status in _PERMANENT or unpaid:
        hint = _HINTS.get(status, "Check the account that your API key belongs to, then run the command again.")
        message = f"the provider refused the call with status {status}: {message}"
        return ModelRefused(message, status, hint=hint.format(key=key))
    if status in _TEMPORARY or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {message}", after=_retry_after(headers))
    return RequestRefused(f"the provider rejected this request ({status}): {message}", status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait before the next request, if the server stated them."""
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None


LOOPBACK: Final = "127.0.0.1"
_HOSTS: Final = {LOOPBACK, "::1", "localhost"}


def is_loopback(url: str) -> bool:
    """Return whether an address refers to this machine."""
    return urlsplit(url).hostname in _HOSTS


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
