"""UUIDs of memories. The toolsets rag and fabric show them instead of IDs such as `mem_7`, which they also accept."""

from typing import Final
from uuid import UUID

from ..core import ids
from ..core.errors import InvalidInput, MemoryNotFound
from ..core.memory import StoredMemory
from ..observe.memory import MemoryCore

_VERSION: Final = 8 << 76
"""Version of UUIDs with a custom layout (RFC 9562, section 5.8)."""
_VARIANT: Final = 2 << 62
_KEY: Final = (1 << 62) - 1


def uuid_of(stored: StoredMemory) -> str:
    """Return the UUID of a memory: 48 bits of its creation time in milliseconds, and 62 bits of its key."""
    return str(UUID(int=(stored.created & (1 << 48) - 1) << 80 | _VERSION | _VARIANT | stored.key & _KEY))


def find_by_uuid(core: MemoryCore, memory_id: str) -> StoredMemory:
    """Return the memory with this UUID or public ID, even if it is forgotten.

    Raises:
        MemoryNotFound: No memory has this ID.
        InvalidInput: The text is neither a UUID nor a public ID.
    """
    if ids.canonical(memory_id):
        return core.get(memory_id)
    try:
        known = UUID(memory_id)
    except ValueError:
        raise InvalidInput("memory_id must be a UUID", hint="Use a memory_id from a reply of this server.") from None
    stored = core.get(ids.show("memory", known.int & _KEY))
    if uuid_of(stored) != str(known):
        raise MemoryNotFound(memory_id)
    return stored
