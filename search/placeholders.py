"""A question that holds a secret asks for what stands in its place: no index has the secret, no answer repeats it."""

import os
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..core.disclosure import Query
from ..core.home import Home

if TYPE_CHECKING:
    from ..archiver.redaction import Redacted

_NAMES = ("projects", "files", "sessions", "branches")
"""Filters whose values are names that the archive redacts."""
_JOINTS = re.compile(r"[/\\.]")
_LONG = 16
"""Characters from which on a word may show by itself that it is a secret: no rule asks for fewer."""
_SHORT = 6
_NAMED = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|=|://")
_PLAIN = re.compile(r"[0-9a-f-]+|[^\W\d_]+")
"""Ids, commits and words, which no rule takes for a secret where no name tells of one."""


def without_secrets(query: Query, home: Home) -> Query:
    """Return the query with the archive's placeholders for its secrets: phrases in concepts, plain in filters."""
    concepts = tuple(redacted(concept, home) for concept in query.concepts)
    filters = replace(query.filters, **{name: _clean(getattr(query.filters, name), home) for name in _NAMES})
    return replace(query, concepts=concepts, filters=filters)


def redacted(text: str, home: Home) -> str:
    """Return a text with phrases of placeholders. Loading the rules takes 30 ms, so a quick look goes first."""
    if not _may_hold(text):
        return text
    done = _redacted(text, home)
    made = done.text
    if '"' not in made:
        for placeholder in {str(finding) for finding in done.findings}:
            made = made.replace(placeholder, f'"{placeholder}"')
    return made


def _clean(names: tuple[str, ...], home: Home) -> tuple[str, ...]:
    """Return names of projects, files and sessions as the archive keeps them."""
    return tuple(_redacted(name, home).text if _may_hold(_JOINTS.sub(" ", name)) else name for name in names)


def _redacted(text: str, home: Home) -> "Redacted":
    from ..archiver.redaction import Redactor

    # A search makes no key: where it is gone, no placeholder can be found again.
    return Redactor(home.key() if home.key_file.is_file() else os.urandom(32)).redact(text)


def _may_hold(text: str) -> bool:
    words = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]
    return any(len(word) >= _LONG and not _PLAIN.fullmatch(word) for word in words) or bool(
        words and _NAMED.search(text)
    )
