"""Public IDs, such as `obs-1042`: a prefix for the kind of item, and the key of the item in the archive.

Keys are decimal because decimal keys cost language models the fewest tokens: about one token per three digits. Callers
treat IDs as opaque and look them up.
"""

PREFIXES = {"observation": "obs-", "exchange": "ex-", "memory": "mem_", "chunk": "chunk_"}
EXAMPLES = "obs-24, ex-12, mem_7 or chunk_3"
_BY_NAME = {prefix[:-1]: prefix for prefix in PREFIXES.values()}


def show(kind: str, key: int) -> str:
    """Return the public ID of an item, such as `obs-1042`. The kinds `document` and `code` have the prefix `chunk_`."""
    return f"{PREFIXES.get(kind, PREFIXES['chunk'])}{key}"


def canonical(public: str) -> str:
    """Return an ID in the form that `show` returns, or an empty text for other input.

    Variants such as `OBS-24`, `obs_24` and `obs-024` are accepted.
    """
    name, _, digits = public.strip().lower().replace("_", "-").rpartition("-")
    if name not in _BY_NAME or not (digits.isdecimal() and digits.isascii()):
        return ""
    return f"{_BY_NAME[name]}{digits.lstrip('0') or '0'}"


def has_prefix(public: str) -> bool:
    """Return whether a text begins with the prefix of an ID, such as `obs-`. The rest can be invalid."""
    name, hyphen, _ = public.strip().lower().replace("_", "-").partition("-")
    return bool(hyphen) and name in _BY_NAME


def key(public: str, kind: str = "") -> int | None:
    """Return the key in a public ID, or None for other text or an ID of another `kind`."""
    shown = canonical(public)
    digits = shown.removeprefix(PREFIXES[kind]) if kind else shown.replace("_", "-").rpartition("-")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def key_without_prefix(typed: str) -> int | None:
    """Return the key that a user typed without a prefix, such as 24, or None for other text."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 19 else None
