"""A question that holds a secret asks for what stands in its place: no index has the secret, no answer repeats it."""

import os
import re

from msgspec.structs import replace

from ..core.disclosure import Query
from ..core.home import Home

_LONG = 16
"""Characters from which on a word may show by itself that it is a secret: no rule asks for fewer."""
_SHORT = 6
_NAMED = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|=|://")
_PLAIN = re.compile(r"[0-9a-f-]+|[^\W\d_]+")
"""Ids, commits and words, which no rule takes for a secret where no name tells of one."""


def without_secrets(query: Query, home: Home) -> Query:
    """The query with the archive's placeholders for its secrets, as phrases, so that nothing but them is found."""
    if not any(map(_may_hold, query.concepts)):
        return query
    return replace(query, concepts=tuple(redacted(concept, home) for concept in query.concepts))


def redacted(text: str, home: Home) -> str:
    """The same for words alone. The rules take 30 ms to load, so most texts are told by a quick look."""
    if not _may_hold(text):
        return text
    from ..archiver.redaction import Redactor

    # A search makes no key: where it is gone, no placeholder can be found again.
    done = Redactor(home.key() if home.key_file.is_file() else os.urandom(32)).redact(text)
    made = done.text
    if '"' not in made:
        for placeholder in {str(finding) for finding in done.findings}:
            made = made.replace(placeholder, f'"{placeholder}"')
    return made


def _may_hold(text: str) -> bool:
    words = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]
    return any(len(word) >= _LONG and not _PLAIN.fullmatch(word) for word in words) or bool(
        words and _NAMED.search(text)
    )
