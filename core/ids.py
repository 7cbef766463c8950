"""Ids that people and agents pass around: a prefix that tells the kind, and the item's key in the archive.

Decimal keys because they are the cheapest to read for a language model: about one token per three digits.
Ids are opaque to callers and are always resolved by look-up, never by their shape.
"""

PREFIXES = {"observation": "obs-", "exchange": "ex-", "memory": "mem_", "chunk": "chunk_"}


def show(kind: str, key: int) -> str:
    """The public id of an item, as in `obs-1042`."""
    return f"{PREFIXES[kind]}{key}"


def is_shown(public: str, key: int) -> bool:
    """Whether an id is written as those of items are."""
    return any(public == f"{prefix}{key}" for prefix in PREFIXES.values())


def key(public: str) -> int | None:
    """The key inside a public id, or None where there cannot be one."""
    digits = public.replace("_", "-").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 19 else None
