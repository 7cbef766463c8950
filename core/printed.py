"""What no index has: places in the archived copies themselves."""

from typing import NamedTuple

from msgspec import Struct


class Place(NamedTuple):
    """A line of an archived transcript, as layer 3 is asked for it, and what is `said` around what was looked for."""

    path: str
    line: int
    said: str


class Printed(Struct, frozen=True):
    """Where something stands in what tools printed, if that was `looked` through; so many of the copies were `unread`
    when the time was up.
    """

    places: tuple[Place, ...] = ()
    unread: int = 0
    looked: bool = False
