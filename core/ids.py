"""Public ids: a prefix for the kind of an item, and its key in the archive.

Keys are decimal, because language models read these at the lowest cost: about one token per three digits. Callers treat
ids as opaque; they are resolved by look-up.
"""

PREFIXES = {"observation": "obs-", "exchange": "ex-", "memory": "mem_", "chunk": "chunk_"}
EXAMPLES = "obs-24, ex-12, mem_7 or chunk_3"
_SPOKEN = {prefix[:-1]: prefix for prefix in PREFIXES.values()}


def show(kind: str, key: int) -> str:
    """Return the public id of an item, as in `obs-1042`. Chunks are stored as `document` or `code`, with one prefix."""
    return f"{PREFIXES.get(kind, PREFIXES['chunk'])}{key}"


def plain(public: str) -> str:
    """Return an id in the form of `show`, also for `OBS-24`, `obs_24` or `obs-024`; empty for other text."""
    name, _, digits = public.strip().lower().replace("_", "-").rpartition("-")
    if name not in _SPOKEN or not (digits.isdecimal() and digits.isascii()):
        return ""
    return f"{_SPOKEN[name]}{digits.lstrip('0') or '0'}"


def key(public: str, kind: str = "") -> int | None:
    """Return the key in a public id; None for other text, or for an id of another `kind`."""
    shown = plain(public)
    digits = shown.removeprefix(PREFIXES[kind]) if kind else shown.replace("_", "-").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def bare(typed: str) -> int | None:
    """Return the key for a number without a prefix; None for other text."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 19 else None
