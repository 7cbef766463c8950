"""Statements in words: sentences and clauses, what each is about, what it denies, and what it says changed."""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from ...search.query.tokenizer import stems
from .lexicon import CHANGES, EMPTY, LIGHT, NEGATORS, NUMBERS, PHRASES, UNITS, VALUED, VERSIONED

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|[\n;]+")
_CLAUSE = re.compile(r",\s+|\s+(?:and|but|so)\s+")
_WORD = re.compile(r"/[\w./-]*\w|\d+(?:[.:]\d+)*%?|[^\W\d_][\w'+#]*(?:[.\-/:]\w+)*")
_NOT = re.compile(r"n't\b")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*%?")
_CODE = re.compile(r".*[\d/_].*|.*[a-z][A-Z].*|[A-Z]{2,}")
_IDENTIFIED = re.compile(r"[^\W\d_]+")
SENTENCES_MAX = 40
"""Sentences of one memory that are compared; longer ones are documents, not claims."""


class Word(Struct, frozen=True):
    """Word that carries meaning, at a position in its statement.

    `value` marks what another value can replace: a number, name or path. A version `of` something is replaced only by
    another version of it, a number only by one of the same `unit`.
    """

    stem: str
    text: str
    light: bool
    number: bool
    value: bool
    of: str = ""
    unit: str = ""
    at: int = 0


class Statement(Struct, frozen=True):
    """A sentence or clause. `denied` is whether it is put in the negative; `changes` are its words for a change."""

    words: tuple[Word, ...]
    plain: tuple[str, ...]
    denied: bool
    changes: frozenset[str]

    @property
    def stems(self) -> frozenset[str]:
        """The stems of all its words but light ones."""
        return frozenset(word.stem for word in self.words if not word.light)


@lru_cache(maxsize=512)
def sentences(content: str) -> tuple[Statement, ...]:
    """The sentences of a text."""
    found = [part for part in _SENTENCE.split(content) if part.strip()]
    return tuple(statement for part in found[:SENTENCES_MAX] if (statement := _statement(part)).words)


@lru_cache(maxsize=512)
def clauses(content: str) -> tuple[Statement, ...]:
    """The clauses of a text's sentences."""
    parts = [clause for part in _SENTENCE.split(content)[:SENTENCES_MAX] for clause in _CLAUSE.split(part)]
    return tuple(statement for part in parts if (statement := _statement(part)).words)


@lru_cache(maxsize=512)
def whole(content: str) -> Statement:
    """Return all words of a text as one statement."""
    return _statement(content)


def normal(text: str) -> str:
    """The text as its words are looked for: contractions and fixed phrases written out."""
    plain = _NOT.sub(" not", text.replace("’", "'").replace("can't", "cannot").replace("won't", "will not"))
    for phrase, meaning in PHRASES:
        plain = re.sub(rf"\b(?:{phrase})\b", meaning, plain, flags=re.IGNORECASE)
    return plain


def _statement(text: str) -> Statement:
    found = _WORD.findall(normal(text))
    plain = tuple(word.lower().removesuffix("'s") for word in found)
    words = tuple(_words(found, plain))
    return Statement(
        words,
        plain,
        sum(word in NEGATORS for word in plain) % 2 == 1,
        frozenset(CHANGES.intersection(plain)),
    )


def _words(found: list[str], plain: tuple[str, ...]) -> Iterator[Word]:
    for place, (text, word) in enumerate(zip(found, plain, strict=True)):
        if word in NEGATORS or word in CHANGES or (word in EMPTY and not _is_name(text, place)):
            continue
        word = NUMBERS.get(word, word)  # noqa: PLW2901
        before, after = plain[place - 1] if place else "", plain[place + 1] if place + 1 < len(plain) else ""
        if _NUMBER.fullmatch(word):
            value = _measures(before, after)
            stem = f"{word} {after.rstrip('s') if after in UNITS else ''}".strip() if value else f"{before} {word}"
            unit = "share" if text.endswith("%") else UNITS.get(text.lower()) or UNITS.get(after, "")
            of = before if before in VERSIONED else ""
            yield Word(stem, text, light=False, number=value, value=value, of=of, unit=unit, at=place)
        elif word in UNITS and place and _NUMBER.fullmatch(NUMBERS.get(before, before)):
            continue
        else:
            named = bool(_CODE.fullmatch(text)) or (place > 0 and text[:1].isupper())
            stem = stem_of(word)
            yield Word(stem, text, light=stem in LIGHT, number=False, value=named, at=place)


def _is_name(text: str, place: int) -> bool:
    """Return whether a word is written in capitals, as `US` and `customer A` are."""
    return text.isupper() and text != "I" and (len(text) > 1 or place > 0)


def _measures(before: str, after: str) -> bool:
    """Whether a number is a value and not a part of a name, as in `bug 101`."""
    named = _IDENTIFIED.fullmatch(before) and before not in EMPTY | CHANGES | VALUED | VERSIONED
    return after in UNITS or not named or stem_of(before) in LIGHT


@lru_cache(maxsize=4_096)
def stem_of(word: str) -> str:
    """A word without its English ending; what is no plain word stays as it is."""
    if not _IDENTIFIED.fullmatch(word):
        return word
    [stem] = stems(word) or [word]
    return stem
