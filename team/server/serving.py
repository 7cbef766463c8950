"""A running team server: its socket and its certificate."""

import ipaddress
import socket
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from ...agents.loopback_server import TimedProtocol
from ...core.errors import ConfigInvalid, InvalidInput


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


def is_unspecified(host: str) -> bool:
    """Return whether an address stands for all addresses of this machine, such as 0.0.0.0."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def http_server(app: Starlette, certificate: Path | None, key: Path | None) -> uvicorn.Server:
    """Return a server that has loaded its certificate. When it is stopped, it finishes requests that have begun.

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
    return uvicorn.Server(config)
