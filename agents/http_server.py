"""MCP over streamable HTTP, for clients on this machine only, in all protocol versions.

Three checks protect the archive from web pages and other users. The server listens on the loopback address only. The
headers Host and Origin must name this address, so a page that rebinds its DNS name is refused. Every request needs the
bearer token. Requests must send their headers within a time limit (`timed_http.py`).
"""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from errno import EADDRINUSE
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from ..core.errors import InvalidInput
from .bearer_gate import BearerGate, load_token
from .server import build, log_to_stderr
from .timed_http import TimedProtocol
from .toolset import ServedTools, ServerConfig

ADDRESS: Final = "127.0.0.1"
PATH: Final = "/mcp"
_SESSIONS_MAX: Final = 100
"""Maximum number of open MCP sessions. Clients of newer protocol versions, which have no handshake, open none."""


def serve_http(
    served: ServedTools, config: ServerConfig, version: str, port: int, announce: Callable[[str, str], None]
) -> None:
    """Serve until interrupted. Port 0 selects a free port. `announce` is called with the URL and the token.

    Raises:
        InvalidInput: The port is in use or not allowed.
        ConfigInvalid: The token file cannot be used.
    """
    log_to_stderr()
    token = load_token(config.home)
    with _listening(port) as listener:
        bound = listener.getsockname()[1]
        hosts = [f"{ADDRESS}:{bound}", f"localhost:{bound}"]
        app = build(served, config, version).streamable_http_app(
            streamable_http_path=PATH,
            max_sessions=_SESSIONS_MAX,
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
            ),
        )
        settings = uvicorn.Config(
            BearerGate(app, token),
            http=TimedProtocol,
            log_config=None,
            access_log=False,
            ws="none",
            server_header=False,
        )
        announce(f"http://{ADDRESS}:{bound}{PATH}", token)
        _HttpServer(settings).run(sockets=[listener])


class _HttpServer(uvicorn.Server):
    """Server that does not handle signals, so that Ctrl-C ends the command at once.

    The handlers of uvicorn would wait for open streams, which clients never close.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield


def _listening(port: int) -> socket.socket:
    """Return a socket on the loopback address. Raises `InvalidInput`."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = "is in use" if error.errno == EADDRINUSE else f"cannot be used: {error.strerror}"
        raise InvalidInput(
            f"Port {port} {reason}", hint="Give another one, or 0 for any free port: palaver mcp --http PORT"
        ) from None
    return listener
