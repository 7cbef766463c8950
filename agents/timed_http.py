"""HTTP protocol that closes connections on which the headers of a request stay incomplete.

Without this limit, a program on this machine could keep any number of connections open without a token.
"""

import asyncio
from typing import Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS: Final = 10.0
"""Maximum seconds for the headers of a request. The body has no limit, because it needs a token."""


class TimedProtocol(H11Protocol):
    """Protocol of one connection."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the first request."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._start()

    def data_received(self, data: bytes) -> None:
        """Process data. Start the time limit of a request with its first byte, and stop it with its last header."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit."""
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
