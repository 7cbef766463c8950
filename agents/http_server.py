"""HTTP server for MCP over streamable HTTP, for clients on this machine only, in all protocol versions.

Three checks protect the archive from web pages and other users:

- The server listens on the loopback address only.
- The headers Host and Origin must name this address, so a page that rebinds its DNS name is refused.
- Every request needs the bearer token, which is stored in a file.
"""

import fcntl
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from errno import EINVAL
from pathlib import Path
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings

from ..core.errors import ConfigInvalid
from ..core.home import Home
from ..core.runtime import sync
from .loopback_server import ADDRESS, VIEWER_PATH, App, Message, Receive, Send, listening, serve_app
from .server import build, log_to_stderr
from .toolset import ServedTools, ServerConfig

_BYTES: Final = 32
_SHORTEST: Final = 32
"""Minimum number of characters of a token in the file. A shorter one is replaced."""
_LONGEST: Final = 4_096
"""Maximum number of bytes that are read from the file."""
_REFUSAL: Final = b"Unauthorized: send the header `Authorization: Bearer TOKEN`, as `palaver mcp --http` prints it.\n"


def load_token(home: Home) -> str:
    """Return the token of a Palaver home. Without a token, create one in a file that only the user can read.

    In read-only mode, a new token is valid for this process only and is not stored.

    Raises:
        ConfigInvalid: The file cannot be read or written.
    """
    try:
        return _stored(home) or _created(home)
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or error
        raise ConfigInvalid(
            f"The token file {home.http_token} cannot be used: {reason}", hint="Delete the file, and start again."
        ) from None


def _stored(home: Home) -> str:
    """Return the token in the file, or an empty text if the file has no valid token."""
    with suppress(FileNotFoundError):
        token = _read_regular(home.http_token).decode("ascii").strip()
        if len(token) >= _SHORTEST and token.isprintable() and " " not in token:
            if not home.is_read_only:
                home.http_token.chmod(0o600)
            return token
    return ""


def _read_regular(path: Path) -> bytes:
    """Return the content of a regular file. Raises `OSError` for another file, such as a pipe, without waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, "it is not a regular file")
        return file.read(_LONGEST)


def _created(home: Home) -> str:
    """Store a new token and return it, or return the token that another process has just stored.

    A file lock excludes other processes. It also works on file systems without hard links, and the system releases it
    if this process is killed.
    """
    token = secrets.token_urlsafe(_BYTES)
    if home.is_read_only:
        return token
    home.make()
    descriptor = os.open(home.http_token, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if stored := _stored(home):
            return stored
        file.truncate()
        file.write(f"{token}\n".encode())
        sync(file)
    home.http_token.chmod(0o600)  # The file may have existed, with other permissions.
    return token


class BearerGate:
    """ASGI application that forwards only requests with the token to the wrapped application."""

    def __init__(self, app: App, token: str) -> None:
        self._app, self._token = app, token.encode("ascii")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward a request with the token, or answer with status 401. Connections other than HTTP are refused."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] not in {"http", "lifespan"}:
            return
        if scope["type"] == "http" and not self._is_allowed(scope):
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"www-authenticate", b'Bearer realm="palaver"'),
            ]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, scope: Message) -> bool:
        headers = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(headers) != 1:
            return False
        scheme, _, token = headers[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


PATH: Final = "/mcp"
_SESSIONS_MAX: Final = 100
"""Maximum number of open MCP sessions. Clients of newer protocol versions, which have no handshake, open none."""


def serve_http(
    served: ServedTools,
    config: ServerConfig,
    version: str,
    port: int,
    announce: Callable[[str, str], None],
    make_viewer: Callable[[int], App] | None = None,
) -> None:
    """Serve until interrupted. Port 0 selects a free port. `announce` is called with the URL and the token.

    `make_viewer` returns the viewer for a port. Its pages below `VIEWER_PATH` have their own gate, so that the token of
    MCP clients opens no page.

    Raises:
        InvalidInput: The port is in use or not allowed.
        ConfigInvalid: The token file cannot be used.
    """
    log_to_stderr()
    token = load_token(config.home)
    with listening(port, "palaver mcp --http") as listener:
        bound = listener.getsockname()[1]
        hosts = [f"{ADDRESS}:{bound}", f"localhost:{bound}"]
        app = build(served, config, version).streamable_http_app(
            streamable_http_path=PATH,
            max_sessions=_SESSIONS_MAX,
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
            ),
        )
        announce(f"http://{ADDRESS}:{bound}{PATH}", token)
        tools = BearerGate(app, token)
        serve_app(tools if make_viewer is None else _with_viewer(tools, make_viewer(bound)), listener)


def _with_viewer(tools: App, viewer: App) -> App:
    """Return an application that serves the viewer below `VIEWER_PATH`, and MCP elsewhere."""

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        is_page = scope["type"] != "lifespan" and f"{scope['path']}/".startswith(f"{VIEWER_PATH}/")
        await (viewer if is_page else tools)(scope, receive, send)

    return serve
