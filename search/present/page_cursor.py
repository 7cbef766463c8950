"""Page cursors. A cursor contains the last event of a page and a digest of the query."""

import base64
import binascii
from functools import lru_cache
from hashlib import blake2b

from ...core.errors import InvalidInput
from ...core.query import Query

_DIGEST = 4
"""Length of the query digest in bytes. In a cursor, the key of the last event follows the digest."""
_LONGEST = 8


def after(key: int, query: Query) -> str:
    """Return the cursor for the page after this event."""
    packed = _digest(query) + key.to_bytes((key.bit_length() + 7) // 8)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def invalid(reason: str) -> InvalidInput:
    """Return the error for an invalid cursor."""
    return InvalidInput(f"Invalid cursor: {reason}", hint="Search again without a cursor.")


def event_of(query: Query) -> int:
    """Return the key of the last event on the previous page. Raises `InvalidInput` for an invalid cursor."""
    packed = unpacked(query.cursor)
    if packed[:_DIGEST] != _digest(query):
        raise invalid("it is not from this search")
    return int.from_bytes(packed[_DIGEST:])


def unpacked(cursor: str) -> bytes:
    """Return the bytes of a cursor. Raises `InvalidInput` if it cannot be the cursor of any search."""
    try:
        packed = base64.b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        packed = b""
    if not _DIGEST < len(packed) <= _DIGEST + _LONGEST:
        raise invalid("it is not from this search")
    return packed


@lru_cache(maxsize=8)
def _digest(query: Query) -> bytes:
    """Return a digest of the query without its limit, so pages can have different limits."""
    asked = repr((query.concepts, query.mode, query.filters, query.weak, query.by, query.per_session, query.here))
    asked += repr(query.also) if query.also else ""
    return blake2b(asked.encode("utf-8", "replace"), digest_size=_DIGEST).digest()
