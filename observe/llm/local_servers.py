"""Servers with a language model: those on this machine, at the usual ports of known programs, and the models of any."""

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, json

from .loopback import LOOPBACK

PORTS: Final = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""Default port of each program."""
_TIMEOUT: Final = 0.5
_REMOTE_TIMEOUT: Final = 10.0
_BYTES_MAX: Final = 1_000_000


class LocalServer(Struct, frozen=True):
    """Server on this machine, and the names of its models."""

    name: str
    url: str
    models: tuple[str, ...]


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


def local_servers() -> list[LocalServer]:
    """Return the servers that list at least one model."""
    addresses = [(name, f"http://{LOOPBACK}:{port}/v1") for name, port in PORTS.items()]
    found = [(name, url, models_at(url, timeout=_TIMEOUT)) for name, url in addresses]
    return [LocalServer(name, url, models) for name, url, models in found if models]


def models_at(url: str, headers: Mapping[str, str] | None = None, timeout: float = _REMOTE_TIMEOUT) -> tuple[str, ...]:
    """Return the names of the models of a server. Return an empty tuple if no such server answers, or lists none."""
    address = urlsplit(url)
    # Unlike urllib, these clients never use a proxy.
    client = HTTPSConnection if address.scheme == "https" else HTTPConnection
    try:
        connection = client(address.hostname or "", address.port, timeout=timeout)
    except ValueError:  # The port is not a number.
        return ()
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models", headers=dict(headers or {}))
        content = connection.getresponse().read(_BYTES_MAX)
        return tuple(model.id for model in json.decode(content, type=_Models).data)
    except (OSError, HTTPException, ValueError):  # The port is closed, or another program uses it.
        return ()
    finally:
        connection.close()
