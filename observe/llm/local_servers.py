"""Search for servers with a language model on this machine, at the usual ports of known programs."""

from http.client import HTTPConnection, HTTPException
from typing import Final

from msgspec import Struct, json

from .loopback import LOOPBACK

PORTS: Final = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""Default port of each program."""
_TIMEOUT: Final = 0.5
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
    found = [(name, port, _models(port)) for name, port in PORTS.items()]
    return [LocalServer(name, f"http://{LOOPBACK}:{port}/v1", models) for name, port, models in found if models]


def _models(port: int) -> tuple[str, ...]:
    """Return the models of a server at a port. Return an empty tuple if no such server answers."""
    connection = HTTPConnection(LOOPBACK, port, timeout=_TIMEOUT)  # Unlike urllib, this client never uses a proxy.
    try:
        connection.request("GET", "/v1/models")
        content = connection.getresponse().read(_BYTES_MAX)
        return tuple(model.id for model in json.decode(content, type=_Models).data)
    except (OSError, HTTPException, ValueError):  # The port is closed, or another program uses it.
        return ()
    finally:
        connection.close()
