"""Addresses of this machine. A proxy cannot reach them, and must not see what is sent to them."""

from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
_HOSTS: Final = {LOOPBACK, "::1", "localhost"}


def is_loopback(url: str) -> bool:
    """Return whether an address names this machine."""
    return urlsplit(url).hostname in _HOSTS
