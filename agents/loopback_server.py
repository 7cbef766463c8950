"""HTTP server on the loopback address, which MCP clients and the viewer use."""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from errno import EADDRINUSE
from typing import Final

import uvicorn

from ..core.errors import InvalidInput
from .http_server import App, TimedProtocol

ADDRESS: Final = "127.0.0.1"


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
    """Serve an ASGI application until interrupted. `started` is called before the first request is answered."""
    settings = uvicorn.Config(
        app, http=TimedProtocol, log_config=None, access_log=False, ws="none", server_header=False
    )
    started()
    _HttpServer(settings).run(sockets=[listener])


class _HttpServer(uvicorn.Server):
    """Server that does not handle signals, so that Ctrl-C ends the command at once.

    The handlers of uvicorn would wait for open streams, which clients never close.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield
