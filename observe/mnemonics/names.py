"""Names: what a title is called as a file, and a type as a folder."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import count

_STEM_BYTES = 200
"""A file system takes 255 bytes; the suffix and a number need some of them."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS = re.compile(r"[\s_/\\-]+")


def slug(title: str) -> str:
    """A title as the stem of a file: letters, marks and digits of every script in lower case, dashes for blanks.

    `untitled` where nothing is left of it.
    """
    lowered = unicodedata.normalize("NFC", title).lower()
    kept = "".join(each for each in lowered if unicodedata.category(each)[0] in "LMN" or _BREAKS.match(each))
    whole = unicodedata.normalize("NFC", _BREAKS.sub("-", kept)).strip("-")
    return whole.encode()[:_STEM_BYTES].decode(errors="ignore").strip("-") or "untitled"


def numbered(stem: str) -> Iterator[str]:
    """The names a file of this stem may have, in the order they are tried."""
    yield f"{stem}.md"
    yield from (f"{stem}-{number}.md" for number in count(2))


def titled(stem: str) -> str:
    """A title for what has a file name only."""
    return _BREAKS.sub(" ", stem).strip() or stem


def kebab(name: str) -> str:
    """A type in kebab-case: `architecturalDecision`, `Architectural decision` and `architectural_decision` are one."""
    return _BREAKS.sub("-", _HUMP.sub("-", name.strip())).strip("-").lower()
