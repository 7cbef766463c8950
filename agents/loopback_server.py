"""HTTP server on the loopback address, which MCP clients and the viewer use.

A connection is closed if the headers of a request stay incomplete for too long. Without this limit, a program on this
machine could keep any number of connections open without a token.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import ExitStack, contextmanager
from errno import EADDRINUSE
from typing import Any, Final, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..core.errors import InvalidInput

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

ADDRESS: Final = "127.0.0.1"
_ADDRESS_IPV6: Final = "::1"
VIEWER_PATH: Final = "/view"
"""Path of the viewer, which has a gate of its own."""


def listening(port: int, command: str) -> socket.socket:
    """Return a socket that listens on a port of the loopback address, or on a free port if `port` is 0.

    Raises:
        InvalidInput: The port is in use or not allowed. The hint names `command`.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == EADDRINUSE else f"cannot be used: {error.strerror}"
        raise InvalidInput(
            f"Port {port} {reason}", hint=f"Give another one, or 0 for any free port: {command} PORT"
        ) from None
    return listener


def serve_app(app: App, listener: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve an ASGI application until interrupted. `started` is called before the first request is answered.

    Raises:
        InvalidInput: Another program uses the same port of the IPv6 loopback address.
    """
    settings = uvicorn.Config(
        app, http=TimedProtocol, log_config=None, access_log=False, ws="none", server_header=False
    )
    logging.getLogger("uvicorn.error").addFilter(_is_no_interruption)
    with ExitStack() as stack:
        sockets = [listener, *map(stack.enter_context, _on_ipv6(listener.getsockname()[1]))]
        started()
        _HttpServer(settings).run(sockets=sockets)


def _is_no_interruption(record: logging.LogRecord) -> bool:
    """Return False for the traceback that Starlette logs when Ctrl-C cancels the lifespan of an application."""
    return "KeyboardInterrupt" not in record.getMessage()


def _on_ipv6(port: int) -> list[socket.socket]:
    """Return a socket that listens on the same port of the IPv6 loopback address, or none on a machine without IPv6.

    Browsers resolve names below `localhost` to both addresses. Another user's program on the IPv6 address would get the
    link of the viewer.

    Raises:
        InvalidInput: Another program uses the port.
    """
    try:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return []
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((_ADDRESS_IPV6, port))
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno != EADDRINUSE:
            return []
        problem = f"Port {port} of {_ADDRESS_IPV6} is in use by another program"
        raise InvalidInput(problem, hint="Start again with another port.") from None
    return [listener]


class _HttpServer(uvicorn.Server):
    """Server that does not handle signals, so that Ctrl-C ends the command at once.

    The handlers of uvicorn would wait for open streams, which clients never close.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield


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
