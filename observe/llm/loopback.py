"""Addresses of this machine. Requests to them must not go through a proxy."""

from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
_HOSTS: Final = {LOOPBACK, "::1", "localhost"}


def is_loopback(url: str) -> bool:
    """Return whether an address refers to this machine."""
    return urlsplit(url).hostname in _HOSTS
