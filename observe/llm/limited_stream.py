"""Streams of HTTP replies with limits on size and time.

Importing this module loads the HTTP library of the SDK for the Messages API.
"""

from collections.abc import Callable, Iterator

import httpx2

from .http_replies import limited


class LimitedStream(httpx2.SyncByteStream):
    """Body of a reply that is read within limits."""

    def __init__(self, stream: httpx2.SyncByteStream, seconds: float) -> None:
        self._stream, self._seconds = stream, seconds

    def __iter__(self) -> Iterator[bytes]:
        return limited(self._stream, self._seconds)

    def close(self) -> None:
        """Release the connection."""
        self._stream.close()


def limiting(seconds: float) -> Callable[[httpx2.Response], None]:
    """Return a hook for the HTTP client that limits the size of each reply and the time to read it."""

    def limit(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = LimitedStream(response.stream, seconds)

    return limit
