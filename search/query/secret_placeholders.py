"""Replacement of secrets in queries. The archive contains placeholders, so a query must contain the same ones."""

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...archiver.redaction.quick import may_contain_secret, name_may_contain_secret
from ...core.home import Home
from ...core.query import Query, checked_length

if TYPE_CHECKING:
    from ...archiver.redaction import Redacted

_NAMES = ("projects", "files", "sessions", "branches")
"""Filters whose values are redacted in the archive."""


def without_secrets(query: Query, home: Home) -> Query:
    """Return the query with placeholders instead of secrets.

    Placeholders are quoted phrases in concepts and plain text in filters.
    """
    concepts = tuple(redacted(concept, home) for concept in query.concepts)
    filters = replace(query.filters, **{name: _clean(getattr(query.filters, name), home) for name in _NAMES})
    return replace(query, concepts=concepts, filters=filters, also=tuple(redacted(each, home) for each in query.also))


def redacted(text: str, home: Home) -> str:
    """Return a query with a quoted placeholder instead of each secret. Raises `QueryTooLong`."""
    checked_length(text)
    if not may_contain_secret(text):
        return text
    done = _redacted(text, home)
    made = done.text
    if '"' not in made:
        for placeholder in {str(finding) for finding in done.findings}:
            made = made.replace(placeholder, f'"{placeholder}"')
    return made


def _clean(names: tuple[str, ...], home: Home) -> tuple[str, ...]:
    """Return names as the archive stores them: with placeholders instead of secrets."""
    return tuple(_redacted(name, home).text if name_may_contain_secret(name) else name for name in names)


def _redacted(text: str, home: Home) -> "Redacted":
    from ...archiver.redaction import Redactor

    # A search never creates a key. Without the key, a random key yields placeholders without matches.
    return Redactor(home.key() if home.key_file.is_file() else os.urandom(32)).redact(text)
