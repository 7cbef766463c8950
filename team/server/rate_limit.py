"""Limit of the requests of one address in a minute, in the memory of a server. It protects requests without a token."""

import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from ...core.errors import TeamRefused

SECONDS: Final = 60
"""Length of the window in which requests are counted. It is also the value of `Retry-After`."""
_IPV6_NETWORK: Final = 64
"""Bits of an IPv6 address that count. One machine can use all addresses with the same beginning."""


class RateLimit:
    """Count of requests by address. All counts return to zero every minute, so that they need little memory."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow at most `most` requests of an address in a minute."""
        self._most, self._clock = most, clock
        self._window: float = 0.0
        self._counts = Counter[str]()

    def take(self, address: str) -> None:
        """Count a request of an address.

        Raises:
            TeamRefused: The address has used its requests of this minute.
        """
        window = self._clock() // SECONDS
        if window != self._window:
            self._window, self._counts = window, Counter[str]()
        if self._counts[_network(address)] >= self._most:
            raise TeamRefused("Too many requests of this address", hint=f"Try again in {SECONDS} seconds.", status=429)
        self._counts[_network(address)] += 1

    def give_back(self, address: str) -> None:
        """Count a request of `take` no more."""
        self._counts[_network(address)] = max(0, self._counts[_network(address)] - 1)


def _network(address: str) -> str:
    try:
        number = ip_address(address)
    except ValueError:
        return address
    if not isinstance(number, IPv6Address):
        return address
    # A socket for both versions states an IPv4 address as one of IPv6.
    return str(number.ipv4_mapped or int(number) >> 128 - _IPV6_NETWORK)
