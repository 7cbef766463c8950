"""Cursors: where a page ended, so that the next one goes on there."""

import base64
import binascii
from functools import lru_cache
from hashlib import blake2b

from ...core.errors import InvalidInput
from ...core.query import Query

_DIGEST = 4
"""Bytes that tell a search from every other; the key of the last event follows them."""
_LONGEST = 8


def after(key: int, query: Query) -> str:
    """The cursor of a page that ended with an event. Short, since it is shown with every page."""
    packed = _digest(query) + key.to_bytes((key.bit_length() + 7) // 8)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def invalid(reason: str) -> InvalidInput:
    """What is wrong with a cursor, as an error to raise."""
    return InvalidInput(f"Invalid cursor: {reason}", hint="Search again without it.")


def event_of(query: Query) -> int:
    """The event that the page before ended with; raises `InvalidInput`, whatever the cursor is."""
    try:
        padded = query.cursor + "=" * (-len(query.cursor) % 4)
        packed = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise invalid("no search gave it") from None
    if not _DIGEST < len(packed) <= _DIGEST + _LONGEST:
        raise invalid("no search gave it")
    if packed[:_DIGEST] != _digest(query):
        raise invalid("it is of another search, or of none")
    return int.from_bytes(packed[_DIGEST:])


@lru_cache(maxsize=8)
def _digest(query: Query) -> bytes:
    """How many are wanted may differ from page to page; nothing else may."""
    asked = repr((query.concepts, query.mode, query.filters, query.weak, query.by))
    return blake2b(asked.encode("utf-8", "replace"), digest_size=_DIGEST).digest()
