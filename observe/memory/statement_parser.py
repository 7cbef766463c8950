"""Parser of statements, which splits a text into sentences or clauses of classified words.

`statement_words.json` lists the negations, opposites, alternatives, units and function words for the contradiction
rules.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import orjson
from msgspec import Struct

from ...search.query.tokenizer import stems

_LISTS: Final[dict[str, Any]] = orjson.loads(files(__package__).joinpath("statement_words.json").read_bytes())


def _words_of(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name])


NEGATORS = _words_of("negators")
SCOPES = _words_of("scopes")
"""Words that limit a statement to some cases or to part of its subject, such as `unless` or `only`."""
FUNCTION_WORDS = _words_of("function_words")
"""Function words, which carry grammar and no content."""
AUXILIARIES = _words_of("auxiliaries")
LIGHT_VERBS = _words_of("light_verbs")
"""Stems of light verbs, such as `use`, and of other words that do not identify the subject of a statement."""
GENERIC_VERBS = _words_of("generic_verbs")
"""Stems of general verbs, such as `use`.

A later statement with a verb of change can replace a statement with such a verb: `we use A`, then `we switched to B`.
"""
CHANGE_WORDS = _words_of("change_words")
"""Words that announce a change."""
PEOPLE = _words_of("people")
"""Stems of subjects that can have many properties at the same time, such as `user`."""
SINGLE_OBJECT_VERBS = _words_of("single_object_verbs")
"""Stems of verbs that take one object at a time. Other verbs, such as know or visit, take several objects."""
EXCLUSIVE_VERBS = _words_of("exclusive_verbs")
"""Verbs that can have only one subject at a time, such as `lead`."""
VALUE_NOUNS = _words_of("value_nouns")
"""Nouns after which a number is a value. After any other noun, a number is part of a name, as in `bug 101`."""
PRODUCTS = _words_of("products")
"""Products. A number after a product is a version, which conflicts only with another version of this product."""
CATEGORIES = _words_of("categories")
"""Stems of category nouns that add nothing to an alternative, as in `the SQLite database`."""
UNITS: Final[Mapping[str, str]] = {unit: kind for kind, units in _LISTS["units"].items() for unit in units}
"""Kind of quantity of each unit. Numbers of different kinds never conflict."""
PHRASES: Final[Sequence[tuple[str, str]]] = list(map(tuple, _LISTS["phrases"]))
"""Regular expressions of phrases and their replacements, applied before the text is split into words."""
OPPOSITES: Final[Sequence[Sequence[str]]] = _LISTS["opposites"]
"""Pairs of words with opposite meanings."""
ALTERNATIVES: Final[Sequence[Sequence[str]]] = _LISTS["alternatives"]
"""Groups of alternatives. Two words of a group conflict if the statements agree in everything else."""

_ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = (
    {word: str(number) for number, word in enumerate((*_ONES, *_TEENS))}
    | {word: str(number) for number, word in zip(range(20, 100, 10), _TENS, strict=True)}
    | {
        f"{ten}-{word}": str(number + digit)
        for number, ten in zip(range(20, 100, 10), _TENS, strict=True)
        for digit, word in enumerate(_ONES[1:], 1)
    }
    | {"once": "1", "twice": "2", "dozen": "12", "hundred": "100", "thousand": "1000"}
)

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|[\n;]+")
_CLAUSE = re.compile(r",\s+|\s+(?:and|but|so)\s+")
_WORD = re.compile(r"/[\w./-]*\w|\d+(?:[.:]\d+)*%?|[^\W\d_][\w'+#]*(?:[.\-/:]\w+)*")
_NOT = re.compile(r"n't\b")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*%?")
_CODE = re.compile(r".*[\d/_].*|.*[a-z][A-Z].*|[A-Z]{2,}")
_LETTERS = re.compile(r"[^\W\d_]+")
_PREFIXES = ("un", "in", "dis", "non", "im", "ir", "a", "non-")
SENTENCES_MAX = 40
"""Maximum number of sentences of a memory that are compared. Further sentences are ignored."""


class Word(Struct, frozen=True):
    """Content word at a position in its statement.

    `light` marks a light verb, such as `use`, which does not identify a subject. `value` marks a number, name or path,
    which another value can replace. A version can be replaced only by a version of the same `product`, and a number
    only by a number of the same `unit`.
    """

    stem: str
    text: str
    light: bool
    number: bool
    value: bool
    product: str = ""
    unit: str = ""
    position: int = 0


class ParsedStatement(Struct, frozen=True):
    """Sentence or clause.

    `words` are its content words, `tokens` all its words in lower case, and `changes` the words that announce a change.
    """

    words: tuple[Word, ...]
    tokens: tuple[str, ...]
    negated: bool
    changes: frozenset[str]

    @property
    def stems(self) -> frozenset[str]:
        """Stems of all content words except light verbs."""
        return frozenset(word.stem for word in self.words if not word.light)


@lru_cache(maxsize=512)
def sentences(content: str) -> tuple[ParsedStatement, ...]:
    """Return the sentences of a text."""
    parts = [part for part in _SENTENCE.split(content) if part.strip()]
    return tuple(parsed for part in parts[:SENTENCES_MAX] if (parsed := _parse(part)).words)


@lru_cache(maxsize=512)
def clauses(content: str) -> tuple[ParsedStatement, ...]:
    """Return the clauses of the sentences of a text."""
    parts = [clause for part in _SENTENCE.split(content)[:SENTENCES_MAX] for clause in _CLAUSE.split(part)]
    return tuple(parsed for part in parts if (parsed := _parse(part)).words)


@lru_cache(maxsize=512)
def whole(content: str) -> ParsedStatement:
    """Return all words of a text as one statement."""
    return _parse(content)


def normalized(text: str) -> str:
    """Return the text with contractions and fixed phrases replaced."""
    plain = _NOT.sub(" not", text.replace("’", "'").replace("can't", "cannot").replace("won't", "will not"))
    for phrase, replacement in PHRASES:
        plain = re.sub(rf"\b(?:{phrase})\b", replacement, plain, flags=re.IGNORECASE)
    return plain


def are_opposites(first: Word, second: Word) -> bool:
    """Return whether two words are opposites, according to the word list or a prefix such as `un`."""
    if first.stem != second.stem and _share_group(first, second, _OPPOSITES):
        return True
    short, long = sorted((first.stem, second.stem), key=len)
    return len(short) > 3 and long.endswith(short) and long[: -len(short)] in _PREFIXES


def are_alternatives(first: Word, second: Word) -> bool:
    """Return whether two words are alternatives of one kind, such as two databases."""
    return _share_group(first, second, _ALTERNATIVES)


def are_values(first: Word, second: Word) -> bool:
    """Return whether two words are values of the same kind: two numbers without conflicting units, or two names."""
    same_unit = first.unit == second.unit or not (first.unit and second.unit)
    return (
        first.value and second.value and same_unit and (first.number, first.product) == (second.number, second.product)
    )


@lru_cache(maxsize=4_096)
def stem_of(word: str) -> str:
    """Return the English stem of a word. A word with characters other than letters stays unchanged."""
    if not _LETTERS.fullmatch(word):
        return word
    [stem] = stems(word) or [word]
    return stem


def _parse(text: str) -> ParsedStatement:
    words = _WORD.findall(normalized(text))
    tokens = tuple(word.lower().removesuffix("'s") for word in words)
    negated = sum(word in NEGATORS for word in tokens) % 2 == 1
    return ParsedStatement(tuple(_words(words, tokens)), tokens, negated, CHANGE_WORDS.intersection(tokens))


def _words(words: list[str], tokens: tuple[str, ...]) -> Iterator[Word]:
    for position, (text, token) in enumerate(zip(words, tokens, strict=True)):
        if (
            token in NEGATORS
            or token in CHANGE_WORDS
            or (token in FUNCTION_WORDS and not _is_capitalized(text, position))
        ):
            continue
        word = NUMBERS.get(token, token)
        before = tokens[position - 1] if position else ""
        after = tokens[position + 1] if position + 1 < len(tokens) else ""
        if _NUMBER.fullmatch(word):
            yield _number(text, word, before, after, position)
        elif word in UNITS and position and _NUMBER.fullmatch(NUMBERS.get(before, before)):
            continue
        else:
            stem, named = stem_of(word), bool(_CODE.fullmatch(text)) or (position > 0 and text[:1].isupper())
            yield Word(stem, text, light=stem in LIGHT_VERBS, number=False, value=named, position=position)


def _number(text: str, word: str, before: str, after: str, position: int) -> Word:
    named = _LETTERS.fullmatch(before) and before not in FUNCTION_WORDS | CHANGE_WORDS | VALUE_NOUNS | PRODUCTS
    value = after in UNITS or not named or stem_of(before) in LIGHT_VERBS
    stem = f"{word} {after.rstrip('s') if after in UNITS else ''}".strip() if value else f"{before} {word}"
    unit = "share" if text.endswith("%") else UNITS.get(text.lower()) or UNITS.get(after, "")
    product = before if before in PRODUCTS else ""
    return Word(stem, text, light=False, number=value, value=value, product=product, unit=unit, position=position)


def _is_capitalized(text: str, position: int) -> bool:
    """Return whether a function word is capitalized because it is a name, as `US` or as `A` in `customer A`."""
    return text.isupper() and text != "I" and (len(text) > 1 or position > 0)


def _share_group(first: Word, second: Word, groups: Mapping[str, frozenset[int]]) -> bool:
    return not groups.get(first.stem, frozenset()).isdisjoint(groups.get(second.stem, ()))


def _groups_of(groups: Sequence[Sequence[str]]) -> dict[str, frozenset[int]]:
    """Return, for each stem, the indices of the groups that contain it."""
    groups_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(groups):
        for word in group:
            groups_of[stem_of(word)].add(number)
    return {stem: frozenset(numbers) for stem, numbers in groups_of.items()}


_OPPOSITES, _ALTERNATIVES = _groups_of(OPPOSITES), _groups_of(ALTERNATIVES)
