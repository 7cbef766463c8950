"""Query analysis: words, quoted phrases, prefixes, time expressions, secrets, and page cursors.

No other syntax is supported. The archive contains placeholders of secrets, so secrets in a query are replaced by the
same placeholders. A page cursor contains the last event of a page and a digest of the query.
"""

import base64
import binascii
import math
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction.scanner import may_contain_secret, name_may_contain_secret
from ...core.conversation import day_end, day_start
from ...core.errors import InvalidInput
from ...core.home import Home
from ...core.query import Query, checked_length
from ...core.results import Correction, TimeExpression
from ...core.time_expressions import extract

if TYPE_CHECKING:
    from ...archiver.redaction import Redacted

WORD = re.compile(r"[^\W_]+")
"""Pattern of a word. Punctuation separates words, even inside a name."""
SENTENCE = 4
"""Minimum number of words outside quotes that make a query a sentence. Its quoted phrases may match inexactly."""
_QUOTED = re.compile(r'"([^"]*\w[^"]*)"|“([^”]*\w[^”]*)”')
_QUOTES = re.compile(r'["“”]')
_PUNCTUATION = ".,:;!?()[]`'"
_PREFIX = re.compile(r"(?<!\S)(\w{2,})\*(?!\S)")
_NAME = re.compile(r"(?=\S*\w[^\w\s]+\w|\S*\w_\w)\S+")
"""Pattern of a path, error code, version or ID: no whitespace, and punctuation between word characters."""
_FEW_TERMS, _MANY_TERMS = 6, 12


def shortness(terms: int) -> float:
    """Return a measure of how much shorter than 12 terms a query is.

    The value is 0 for 12 or more terms and 0.48 for 6 or fewer terms. Each missing term adds more than the one before.
    """
    return math.log(_MANY_TERMS / min(max(terms, _FEW_TERMS), _MANY_TERMS)) ** 2


class AnalyzedQuery(Struct, frozen=True):
    """Parts of a query. `Snapshot.resolve` and `ExactPhrases.resolve` add the attributes that depend on the index.

    Attributes:
        text: All words, including quoted words.
        phrases: Quoted phrases. An entry must contain each of these phrases.
        name: The whole query if it is a single name. A name that occurs in the index becomes a phrase.
        prefixes: Words with a trailing `*`. A prefix matches every word that begins with it.
        corrections: Unknown words, and the similar known words that replace them in `text`.
        all_known: True if each term occurs in the index.
        no_known_term: True if the query is not a sentence and none of its terms occurs in the index.
        shortness: Result of `shortness` for the query, reduced in a small archive.
        archive_size: Size of the archive: its number of entries divided by 1,000, at most 1.
        in_sentence: True if at least `SENTENCE` words are outside quotes.
        exact: Phrases that must match literally.
        inexact: Phrases that match only with other forms of their words.
        relaxed: Phrases without a match, if the query is a sentence. Their words are searched separately.
        times: Time expressions, which are not part of `text`. At most one per concept.
        empty_times: Time expressions whose date range contains no entry. They are searched as words.
    """

    text: str
    phrases: tuple[str, ...] = ()
    name: str = ""
    prefixes: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    all_known: bool = False
    no_known_term: bool = False
    shortness: float = 0.0
    archive_size: float = 0.0
    in_sentence: bool = False
    exact: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    empty_times: tuple[TimeExpression, ...] = ()

    @classmethod
    def of(cls, query: str, *, dated: bool = False) -> "AnalyzedQuery":
        """Return the analyzed query. With `dated`, recognise a time expression."""
        outside_quotes = len(_QUOTED.sub(" ", query).split())
        times: tuple[TimeExpression, ...] = ()
        if dated and (expression := extract(query)):
            query, said, (first, last) = expression
            times = (TimeExpression(said, day_start(first.isoformat()), day_end(last.isoformat())),)
        phrases = tuple(one or other for one, other in _QUOTED.findall(query))
        return cls(
            _PREFIX.sub(r"\1", query),
            phrases,
            query if not phrases and _NAME.fullmatch(query) else "",
            tuple(_PREFIX.findall(query)),
            in_sentence=outside_quotes >= SENTENCE,
            times=times,
        )

    @classmethod
    def joined(cls, wordings: Sequence["AnalyzedQuery"]) -> "AnalyzedQuery":
        """Combine several wordings of a query into one query. All wordings must have the same phrases."""
        first, *others = wordings
        if not others:
            return first
        texts = dict.fromkeys(wording.text for wording in wordings)
        return replace(
            first,
            text=" ".join(texts),
            corrections=tuple(dict.fromkeys(correction for wording in wordings for correction in wording.corrections)),
            all_known=all(wording.all_known for wording in wordings),
            no_known_term=all(wording.no_known_term for wording in wordings),
            shortness=sum(wording.shortness for wording in wordings) / len(wordings),
            times=next((wording.times for wording in wordings if wording.times), ()),
            empty_times=next((wording.empty_times for wording in wordings if wording.empty_times), ()),
        )

    def corrected(self, corrections: Sequence[Correction]) -> "AnalyzedQuery":
        """Return the query with misspelled words replaced by their corrections."""
        if not corrections:
            return self
        replacements = dict(corrections)
        text = WORD.sub(lambda word: replacements.get(word[0], word[0]), self.text)
        return replace(self, text=text, corrections=tuple(corrections))

    @property
    def words(self) -> list[str]:
        """Distinct words without surrounding punctuation and without words of empty time expressions."""
        times = {word for expression in self.empty_times for word in expression.text.split()}
        words = (word.strip(_PUNCTUATION) for word in unquoted(self.text).split())
        return [word for word in dict.fromkeys(words) if word and word not in times]


def unquoted(query: str) -> str:
    """Return a query without its quotation marks."""
    return " ".join(_QUOTES.sub(" ", query).split())


_NAMES = ("projects", "files", "sessions", "branches")
"""Filters whose values are redacted in the archive."""


def without_secrets(query: Query, home: Home) -> Query:
    """Return the query with placeholders instead of secrets.

    Placeholders are quoted phrases in concepts and plain text in filters.
    """
    concepts = tuple(redacted(concept, home) for concept in query.concepts)
    filters = replace(query.filters, **{name: _clean(getattr(query.filters, name), home) for name in _NAMES})
    return replace(
        query, concepts=concepts, filters=filters, also=tuple(redacted(wording, home) for wording in query.also)
    )


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
