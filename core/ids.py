"""Ids that people and agents pass around: a prefix that tells the kind, and the item's key in the archive.

Decimal keys because they are the cheapest to read for a language model: about one token per three digits.
Ids are opaque to callers and are always resolved by look-up, never by their shape.
"""

PREFIXES = {"observation": "obs-", "exchange": "ex-", "memory": "mem_", "chunk": "chunk_"}
EXAMPLES = "obs-24, ex-12, mem_7 or chunk_3"
_SPOKEN = {prefix[:-1]: prefix for prefix in PREFIXES.values()}


def show(kind: str, key: int) -> str:
    """Return the public id of an item, as in `obs-1042`. Chunks are stored as `document` or `code`, with one prefix."""
    return f"{PREFIXES.get(kind, PREFIXES['chunk'])}{key}"


def plain(public: str) -> str:
    """An id as `show` writes it, also where it was typed as `OBS-24`, `obs_24` or `obs-024`; empty for what is none."""
    name, _, digits = public.strip().lower().replace("_", "-").rpartition("-")
    if name not in _SPOKEN or not (digits.isdecimal() and digits.isascii()):
        return ""
    return f"{_SPOKEN[name]}{digits.lstrip('0') or '0'}"


def key(public: str, kind: str = "") -> int | None:
    """The key inside a public id, or None where there cannot be one; nor is there where it is not of the `kind`."""
    shown = plain(public)
    digits = shown.removeprefix(PREFIXES[kind]) if kind else shown.replace("_", "-").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def bare(typed: str) -> int | None:
    """The key that a number without a prefix would be; None for anything else."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 19 else None
