"""Judge that compares two statements by rules, without a language model.

A text is split into sentences or clauses of classified words. Two statements contradict each other in two cases:

- Exactly one of them is negated.
- They differ in words that are opposites, alternatives of one kind, or different values.

In both cases, the other content words must be the same, except that one of the statements may have up to two more.
`rule_words.json` lists the negations, opposites, alternatives, units and function words.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct

from ...core.memory import Memory
from ...search.query.tokenizer import stems

_LISTS: Final[dict[str, Any]] = orjson.loads(files(__package__).joinpath("rule_words.json").read_bytes())


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


_GRAMMAR = FUNCTION_WORDS | CHANGE_WORDS | NEGATORS
_WORDS_MAX = 200
"""Maximum number of content words of a compared statement. A longer text is data, such as a log, not a claim."""


class Verdict(StrEnum):
    """Relation of a newer statement to an older one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    COMPATIBLE = "compatible"


MemoryPair: TypeAlias = tuple[Memory, Memory]
"""Pair of memories, the older first."""


class Judgement(Struct, frozen=True):
    """Verdict with its reason in one sentence, and the name of the judge.

    `unsure` is True if the rules found only that both have a common subject. A language model can then be asked.
    `certain` is False for a supersession that is only proposed.
    """

    verdict: Verdict
    reason: str
    judge: str
    unsure: bool = False
    certain: bool = True

    @property
    def conflict(self) -> bool:
        """True if the two statements cannot both be true."""
        return self.verdict in {Verdict.CONTRADICTS, Verdict.SUPERSEDES}


class RuleJudge:
    """Judge that compares pairs of memories by rules.

    The verdict on a conflict is `SUPERSEDES` if the newer statement reports a change, and otherwise `CONTRADICTS`.
    `docs/memories.md` states the measured precision and recall.
    """

    name = "rules"

    def judge_all(self, pairs: Sequence[MemoryPair]) -> list[Judgement]:
        """Return the relation of the newer memory to the older memory, for each pair."""
        return [self.judge(older.content, newer.content) for older, newer in pairs]

    def close(self) -> None:
        """Do nothing, because the rules use no resources."""

    def judge(self, older: str, newer: str) -> Judgement:
        """Return the relation of a newer text to an older text."""
        if (replaced := _replaced_value(older, newer)) is not None and not differ_in_subject(older, newer, 1):
            reason = f"The newer memory says that {replaced!r} was replaced"
            return self._supersedes(reason, certain=_is_certain(older, newer, named=True))
        changed = _announces_change(newer) and not _announces_change(older)
        disagreement = next(filter(None, (_disagreement(old, new) for old, new in _pairs(older, newer))), None)
        if disagreement is not None:
            if not changed:
                return Judgement(Verdict.CONTRADICTS, disagreement, self.name, certain=False)
            if not differ_in_subject(older, newer, 1):
                return self._supersedes(disagreement, certain=_is_certain(older, newer))
        if older == newer or (_claims(older) == _claims(newer) != set()):
            return Judgement(Verdict.SAME, "Both say the same", self.name, certain=False)
        if changed and whole(older).stems == whole(newer).stems:
            return self._supersedes("The newer memory has the same words in another order", certain=False)
        return Judgement(Verdict.COMPATIBLE, "Both can be true", self.name, _share_words(older, newer), certain=False)

    def _supersedes(self, reason: str, *, certain: bool) -> Judgement:
        return Judgement(Verdict.SUPERSEDES, reason, self.name, certain=certain)


def differ_in_subject(older: str, newer: str, new_values: int = 0) -> bool:
    """Return whether each text has content words that the other lacks, so that their subjects may differ.

    Numbers are ignored. Up to `new_values` phrases that only the newer text has are ignored too, because they may be
    new values of the same subject.
    """
    new = whole(newer)
    removed, added = ([word for word in words if not word.number] for words in _unshared(whole(older), new))
    if not removed or not added:
        return False
    # The newer text begins with its subject, never with a new value.
    return added[0] == new.words[0] or len(_phrases(added, new)) > new_values


def _claims(text: str) -> set[tuple[tuple[str, ...], bool]]:
    """Return the statements of a text as stems, each with its negation flag."""
    return {(tuple(word.stem for word in statement.words), statement.negated) for statement in sentences(text)}


def _share_words(older: str, newer: str) -> bool:
    """Return whether the shorter text shares more than a third of its content words with the longer text."""
    ours, theirs = (
        {stem for statement in sentences(text) for stem in statement.stems - PEOPLE} for text in (older, newer)
    )
    return 3 * len(ours & theirs) > min(len(ours), len(theirs))


def _announces_change(text: str) -> bool:
    return any(statement.changes for statement in sentences(text))


def _pairs(older: str, newer: str) -> Iterator[tuple[ParsedStatement, ParsedStatement]]:
    """Yield each pair of an older and a newer sentence, then each pair of an older and a newer clause."""
    for parts in (sentences, clauses):
        for old in parts(older):
            for new in parts(newer):
                yield old, new


def _disagreement(old: ParsedStatement, new: ParsedStatement) -> str | None:
    """Return the reason why the two statements cannot both be true, or None if they can."""
    if max(len(old.words), len(new.words)) > _WORDS_MAX or not old.stems & new.stems:
        return None
    only_old, only_new = _unshared(old, new)
    if (reason := _conflicting_words(old, new, only_old, only_new)) is not None:
        return reason
    if old.negated != new.negated and _is_one_subject(only_old, only_new):
        return "One memory negates the other"
    return None


def _conflicting_words(
    old: ParsedStatement, new: ParsedStatement, only_old: list[Word], only_new: list[Word]
) -> str | None:
    """Return a reason that names two mutually exclusive words, or None.

    The result is also None if the statements differ in other words too.
    """
    conflicting = [
        (old_word, new_word)
        for old_word in [*only_old, *(word for word in old.words if word.light)]
        for new_word in [*only_new, *(word for word in new.words if word.light)]
        if old_word.stem != new_word.stem
        and (
            are_opposites(old_word, new_word) or are_alternatives(old_word, new_word) or are_values(old_word, new_word)
        )
    ]
    if not conflicting:
        return _conflicting_holders(old, new, only_old, only_new)
    opposites = any(are_opposites(old_word, new_word) for old_word, new_word in conflicting)
    if not opposites and (old.negated != new.negated or _can_coexist(old, new, conflicting)):
        return None
    stems = {word.stem for pair in conflicting for word in pair}
    ignored = stems | (
        CATEGORIES if any(are_alternatives(old_word, new_word) for old_word, new_word in conflicting) else set[str]()
    )
    differing = (
        [word for word in words if word.stem not in ignored and not word.number] for words in (only_old, only_new)
    )
    if not _is_one_subject(*differing):
        return None
    old_word, new_word = conflicting[0]
    return f"{old_word.text!r} conflicts with {new_word.text!r}"


def _can_coexist(old: ParsedStatement, new: ParsedStatement, conflicting: list[tuple[Word, Word]]) -> bool:
    """Return whether both statements can be true, because they have different subjects or compatible properties."""
    names = {word.stem for word, _ in conflicting if not word.number}
    numbers = {word.stem for word, _ in conflicting if word.number}
    if len(numbers) > 1 or (names and numbers):
        return True
    person = old.words[0].stem in PEOPLE and new.words[0].stem in PEOPLE
    verbs = {word.stem for word in (*old.words, *new.words)}
    return person and not SINGLE_OBJECT_VERBS & verbs and not old.changes | new.changes


def _is_one_subject(rest_old: list[Word], rest_new: list[Word]) -> bool:
    """Return whether one list of words is empty and the other has at most two, so that the subject is the same."""
    return min(len(rest_old), len(rest_new)) == 0 and max(len(rest_old), len(rest_new)) <= 2


def _conflicting_holders(
    old: ParsedStatement, new: ParsedStatement, only_old: list[Word], only_new: list[Word]
) -> str | None:
    """Return a reason that names two holders of an exclusive role, as in `Ana leads` and `Ben leads`, or None."""
    exclusive = EXCLUSIVE_VERBS.intersection(old.tokens, new.tokens) or old.tokens[1:3] == new.tokens[1:3] == (
        "is",
        "the",
    )
    if len(only_old) != 1 or len(only_new) != 1 or not exclusive:
        return None
    old_word, new_word = only_old[0], only_new[0]
    are_names = old_word.text[:1].isupper() and new_word.text[:1].isupper()
    return f"{old_word.text!r} conflicts with {new_word.text!r}" if are_names else None


_GONE = "dropped|removed|replaced|deprecated|retired|gone|not used anymore"
_OLD_VALUE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bfrom (?P<old>.{2,60}?) to ",
        r"\binstead of (?P<old>[^,.;]{2,60})",
        r"\breplaced (?P<old>.{2,60}?) (?:with|by) ",
        rf"(?:^|, |; |\band )(?P<old>[^,.;]{{2,40}}?) (?:was|were|is|are|has been|have been) (?:{_GONE})",
        r"\bstopped using (?P<old>[^,.;]{2,60})",
        r"\bnot longer (?:use|uses|used|kept?|keep|need|needs|run|runs|want|wants) (?P<old>[^,.;]{2,60})",
    )
)
"""Patterns for phrases in which a newer statement mentions the value that it replaces."""


def _replaced_value(older: str, newer: str) -> str | None:
    """Return the value that the newer text describes as replaced, if the older text contains it."""
    text = normalized(newer)
    affirmed = [statement for statement in sentences(older) if not statement.negated]
    stems_of_newer = {word.stem for statement in sentences(newer) for word in statement.words}
    for match in (match for pattern in _OLD_VALUE for match in pattern.finditer(text)):
        named = {word.stem for part in sentences(match["old"]) for word in part.words if not word.light}
        for statement in affirmed:
            stems = {word.stem for word in statement.words}
            shares_subject = (stems_of_newer & stems) - named
            if named & statement.stems and len(named - stems) <= 1 and shares_subject:
                return match["old"].strip()
            if named and statement.stems - PEOPLE <= named:
                return match["old"].strip()
    return None


def _is_certain(older: str, newer: str, *, named: bool = False) -> bool:
    """Return whether a supersession is certain.

    It is certain if the newer text negates the whole older text, or differs from it only in one value. `named` is True
    if the newer text states which value was replaced.
    """
    old, new = whole(older), whole(newer)
    if SCOPES.intersection(old.tokens) != SCOPES.intersection(new.tokens):
        return False
    stems = {word.stem for word in old.words}
    if any(
        stems == {word.stem for word in clause.words} and clause.negated != old.negated for clause in clauses(newer)
    ):
        return True
    removed, added = _unshared(old, new)
    verbs = [{word.stem for word in statement.words if word.light} for statement in (old, new)]
    same_verbs = not verbs[1] - verbs[0] and verbs[0] - verbs[1] <= GENERIC_VERBS
    if old.negated != new.negated or not same_verbs or len(_phrases(added, new)) != 1:
        return False
    if named:
        return not removed and _follows_verb(added, newer, anywhere=True)
    # Measures and alternatives of one class are values wherever they occur in the predicate.
    anywhere = added[0].number or any(
        are_alternatives(old_word, new_word) for old_word in removed for new_word in added
    )
    one_phrase = len(_phrases(removed, old)) == 1
    return one_phrase and _are_values_of_one_thing(removed, added) and _follows_verb(added, newer, anywhere=anywhere)


def _unshared(old: ParsedStatement, new: ParsedStatement) -> tuple[list[Word], list[Word]]:
    """Return the content words that only the older statement has, and those that only the newer statement has."""
    old_stems, new_stems = old.stems, new.stems
    return (
        [word for word in old.words if not word.light and word.stem not in new_stems],
        [word for word in new.words if not word.light and word.stem not in old_stems],
    )


def _phrases(words: Sequence[Word], statement: ParsedStatement) -> list[list[Word]]:
    """Group words into phrases, separated by function words."""
    phrases: list[list[Word]] = []
    for word in words:
        if phrases and _GRAMMAR.isdisjoint(statement.tokens[phrases[-1][-1].position : word.position]):
            phrases[-1].append(word)
        else:
            phrases.append([word])
    return phrases


def _are_values_of_one_thing(removed: Sequence[Word], added: Sequence[Word]) -> bool:
    """Return whether two phrases are numbers with the same unit, two names, alternatives or opposites."""
    if any(word.number for word in (*removed, *added)):
        one_unit = len(removed) == len(added) == 1 and removed[0].unit == added[0].unit
        return one_unit and are_values(removed[0], added[0])
    named = all(word.value for word in (*removed, *added))
    return named or any(
        are_alternatives(old_word, new_word) or are_opposites(old_word, new_word)
        for old_word in removed
        for new_word in added
    )


def _follows_verb(added: Sequence[Word], newer: str, *, anywhere: bool) -> bool:
    """Return whether the new value follows the verb of its clause, so that it is not part of the subject.

    Unless `anywhere` is set, the value must follow the verb directly: `runs on Monday`, not `takes an hour on Monday`.
    """
    for clause in clauses(newer):
        positions = {word.stem: word.position for word in clause.words}
        if all(word.stem in positions for word in added):
            before, after = clause.tokens[: positions[added[0].stem]], clause.tokens[positions[added[-1].stem] + 1 :]
            break
    else:
        return False
    if added[-1].number and after and after[0] in UNITS:
        after = after[1:]
    verbs = [position for position, word in enumerate(before) if _is_verb(word)]
    tail = after[: after.index("instead")] if "instead" in after else after
    while tail and tail[-1] in FUNCTION_WORDS | CHANGE_WORDS:
        tail = tail[:-1]
    if not verbs or any(map(_is_verb, tail)):
        return False
    between = before[verbs[-1] + 1 :]
    if added[0].number:
        return bool(added[0].unit) or "in" not in between[-1:]
    return anywhere or (_GRAMMAR.issuperset(between) and not {"for", "during"}.intersection(between))


def _is_verb(word: str) -> bool:
    return word in AUXILIARIES or word in CHANGE_WORDS or stem_of(word) in LIGHT_VERBS
