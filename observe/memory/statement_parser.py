"""Parser of statements, which splits a text into sentences or clauses of classified words.

Word lists name the negations, opposites, alternatives, units and function words for the contradiction rules.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from ...core.resources import read_data
from ...search.query.tokenizer import stems


class WordLists(Struct, frozen=True):
    """Lists of words and stems, in `statement_words.json`.

    Attributes:
        negators: Negations.
        scopes: Words that limit a statement to some cases or to part of its subject, such as `unless` or `only`.
        function_words: Words that carry grammar and no content.
        light_verbs: Stems of verbs, such as `use`, and of other words that do not identify the subject of a statement.
        generic_verbs: Stems of general verbs. A later statement with a verb of change can replace a statement with such
            a verb: `we use A`, then `we switched to B`.
        change_words: Words that announce a change.
        people: Stems of subjects that can have many properties at the same time, such as `user`.
        single_object_verbs: Stems of verbs that take one object at a time. Other verbs, such as know or visit, take
            several objects.
        exclusive_verbs: Verbs that can have only one subject at a time, such as `lead`.
        value_nouns: Nouns after which a number is a value. After any other noun, a number is part of a name, as in
            `bug 101`.
        products: A number after a product is a version, which conflicts only with another version of this product.
        categories: Stems of category nouns that add nothing to an alternative, as in `the SQLite database`.
        measures: Units by the kind of their quantity.
        counted_things: Units that are a quantity of their own.
        phrases: Regular expressions of phrases and their replacements, applied before the text is split into words.
        opposites: Pairs of words with opposite meanings.
        alternatives: Two words of a group conflict if the statements agree in everything else.
        colours, places, amounts: Words that change the meaning of a statement when added.
    """

    negators: frozenset[str]
    scopes: frozenset[str]
    function_words: frozenset[str]
    auxiliaries: frozenset[str]
    light_verbs: frozenset[str]
    generic_verbs: frozenset[str]
    change_words: frozenset[str]
    people: frozenset[str]
    single_object_verbs: frozenset[str]
    exclusive_verbs: frozenset[str]
    value_nouns: frozenset[str]
    products: frozenset[str]
    categories: frozenset[str]
    measures: dict[str, tuple[str, ...]]
    counted_things: tuple[str, ...]
    phrases: tuple[tuple[str, str], ...]
    opposites: tuple[tuple[str, ...], ...]
    alternatives: tuple[tuple[str, ...], ...]
    colours: tuple[str, ...]
    places: tuple[str, ...]
    amounts: tuple[str, ...]


WORDS = read_data(__file__, "statement_words.json", WordLists)
UNITS = {unit: kind for kind, units in WORDS.measures.items() for unit in units} | {
    unit: unit for unit in WORDS.counted_things
}
"""Kind of quantity of each unit. Numbers of different kinds never conflict."""
_UNNAMED = WORDS.function_words | WORDS.change_words | WORDS.value_nouns | WORDS.products
"""Words before a number that is not part of a name."""

_ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = (
    {word: str(number) for number, word in enumerate((*_ONES, *_TEENS))}
    | {word: str(number) for number, word in zip(range(20, 100, 10), _TENS, strict=True)}
    | {
        f"{ten}-{one}": str(number + digit)
        for number, ten in zip(range(20, 100, 10), _TENS, strict=True)
        for digit, one in enumerate(_ONES[1:], 1)
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
    for phrase, replacement in WORDS.phrases:
        plain = re.sub(rf"\b(?:{phrase})\b", replacement, plain, flags=re.IGNORECASE)
    return plain


def are_opposites(one: Word, other: Word) -> bool:
    """Return whether two words are opposites, according to the word list or a prefix such as `un`."""
    if one.stem != other.stem and _share_group(one, other, _OPPOSITES):
        return True
    short, long = sorted((one.stem, other.stem), key=len)
    return len(short) > 3 and long.endswith(short) and long[: -len(short)] in _PREFIXES


def are_alternatives(one: Word, other: Word) -> bool:
    """Return whether two words are alternatives of one kind, such as two databases."""
    return _share_group(one, other, _ALTERNATIVES)


def are_values(one: Word, other: Word) -> bool:
    """Return whether two words are values of the same kind: two numbers without conflicting units, or two names."""
    same_unit = one.unit == other.unit or not (one.unit and other.unit)
    return one.value and other.value and same_unit and (one.number, one.product) == (other.number, other.product)


@lru_cache(maxsize=4_096)
def stem_of(word: str) -> str:
    """Return the English stem of a word. A word with characters other than letters stays unchanged."""
    if not _LETTERS.fullmatch(word):
        return word
    [stem] = stems(word) or [word]
    return stem


def _parse(text: str) -> ParsedStatement:
    found = _WORD.findall(normalized(text))
    tokens = tuple(word.lower().removesuffix("'s") for word in found)
    negated = sum(word in WORDS.negators for word in tokens) % 2 == 1
    return ParsedStatement(tuple(_words(found, tokens)), tokens, negated, WORDS.change_words.intersection(tokens))


def _words(found: list[str], tokens: tuple[str, ...]) -> Iterator[Word]:
    for position, (text, token) in enumerate(zip(found, tokens, strict=True)):
        if (
            token in WORDS.negators
            or token in WORDS.change_words
            or (token in WORDS.function_words and not _is_capitalized(text, position))
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
            yield Word(stem, text, light=stem in WORDS.light_verbs, number=False, value=named, position=position)


def _number(text: str, word: str, before: str, after: str, position: int) -> Word:
    named = _LETTERS.fullmatch(before) and before not in _UNNAMED
    value = after in UNITS or not named or stem_of(before) in WORDS.light_verbs
    stem = f"{word} {after.rstrip('s') if after in UNITS else ''}".strip() if value else f"{before} {word}"
    unit = "share" if text.endswith("%") else UNITS.get(text.lower()) or UNITS.get(after, "")
    product = before if before in WORDS.products else ""
    return Word(stem, text, light=False, number=value, value=value, product=product, unit=unit, position=position)


def _is_capitalized(text: str, position: int) -> bool:
    """Return whether a function word is capitalized because it is a name, as `US` or as `A` in `customer A`."""
    return text.isupper() and text != "I" and (len(text) > 1 or position > 0)


def _share_group(one: Word, other: Word, groups: Mapping[str, frozenset[int]]) -> bool:
    return not groups.get(one.stem, frozenset()).isdisjoint(groups.get(other.stem, ()))


def _groups_of(groups: Sequence[Sequence[str]]) -> dict[str, frozenset[int]]:
    """Return, for each stem, the indices of the groups that contain it."""
    indices: defaultdict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(groups):
        for word in group:
            indices[stem_of(word)].add(number)
    return {stem: frozenset(numbers) for stem, numbers in indices.items()}


_OPPOSITES, _ALTERNATIVES = _groups_of(WORDS.opposites), _groups_of(WORDS.alternatives)
