"""Grounding: check that every name, number and path in a model's sentence occurs in the conversation.

A quote proves that a line exists, but not that the model's sentence about it is true. An invented version, path or
product name is the most common error, and it is easy to detect. These count as names:

- paths and files (`src/cache.py`), and code identifiers (`cache_dir`, `getUser`, `Store::open`, `--force`)
- numbers, versions, dates and error codes: every group of digits, such as 3, 1,054, v2.1 or E0425
- words in backticks, words in capitals (`JSON`), and capitalised words (`Redis`)

The first word of a sentence is a name only if a singular verb follows it (`Redis is`). Names are compared without
case and without a plural or possessive ending. Capitals do not indicate names in German, or in text where most words
are capitalised, such as a headline. In Chinese, Japanese and Korean, only numbers and ASCII names are compared. In
the conversation, a number may be in full-width digits or in Chinese characters: 三, 十二, 二〇二六, 1万, 3千5百.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from ..rules.salience import QUESTION_WORDS

_DIGITS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_TENS: Final = {"十": 10, "百": 100, "千": 1_000}
_LARGE: Final = {"万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
_CHARACTERS: Final = "".join((*_DIGITS, *_TENS, *_LARGE))
_NUMERAL: Final = re.compile(rf"(?:\d+(?:\.\d+)?)?[{_CHARACTERS}](?:[{_CHARACTERS}]|\d)*")
_PART: Final = re.compile(rf"\d+(?:\.\d+)?|[{_CHARACTERS}]")
_ROUND: Final = re.compile(rf"(\d+(?:\.\d+)?)([{''.join((*_TENS, *_LARGE))}]+)(?![{_CHARACTERS}\d])")
_TOKEN: Final = re.compile(r"[^\s,;!?()\[\]{}<>\"“”„«»‘|=→…—–*`]+")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)*")
_GROUPED: Final = re.compile(r"(?<=\d)[,\u202f\u00a0'’_](?=\d{3}(?!\d))")
"""Pattern for separators of thousands."""
_CJK: Final = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_IN_CJK: Final = re.compile(f"[{_CJK}]")
_SCRIPT_CHANGE: Final = re.compile(f"(?<=[{_CJK}])(?=[!-~])|(?<=[!-~])(?=[{_CJK}])")
"""Pattern for positions between Chinese, Japanese or Korean text and ASCII text, where no space is written."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_HUMP: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:;…—–|]|\n)[\s\"“”„«»‘’'(\[*`-]*\Z")
_CODE_SPAN: Final = re.compile(r"`([^`\n]+)`")
_GERMAN: Final = re.compile(r"\b(?:und|nicht|der|das|wurde|wird|ist|sind|eine?|mit|für|auf)\b", re.IGNORECASE)
_GERMAN_MIN: Final = 2
_ENDING: Final = re.compile(r"(?:['’]s|['’])\Z")
_EDGES: Final = ".:'’&+~$@#%/\\"
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
"""Pattern for abbreviations such as `e.g`."""
_ALTERNATIVES: Final = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)+")
"""Pattern for words joined by slashes, such as `read/write`. The words are alternatives or parts of a path."""
_AMOUNT: Final = re.compile(r"[^\W\d_]?\d+(?:\.\d+)*[^\W\d_]{0,3}")
"""Pattern for a number with a unit, such as `12ms`, or a version, such as `v2.1`."""
_CAPITALS_MAX: Final = 0.5
"""Maximum share of words with a capital in a sentence. In a sentence with more, a capital does not indicate a name."""
_VERB_AFTER: Final = re.compile(
    r"[ ](?:(?:is|was|has|does|needs|uses|stores|supports|requires|provides|replaces|returns|handles|runs)"
    r"|(?P<also_plural>had|did|can|cannot|could|will|would|should|must|may|might|now|no longer|never|replaced))\b"
)
"""Pattern for a verb or adverb that follows a subject, such as `is` in `Redis is fast`.

If the first word of a sentence is a singular subject without an article, it is a name.
"""
_NO_NAME: Final = re.compile(
    r"(?:it|this|that|there|here|nothing|everything|something|anything|nobody|everyone|one|none|another|either|neither"
    rf"|each|all|both|{QUESTION_WORDS}|from|i|he|she|you|we|they|only|.+(?:ed|ing|ly|tion|sion|ment|ness|ity|[ae]nc[ey]))\Z",
    re.IGNORECASE,
)
"""Pattern for words that are singular subjects but not names, such as `it`, `nothing` or `everyone`."""
_LONG: Final = 4
_SHARED_MIN: Final = 0.5


def kanji_numbers(text: str) -> Iterator[str]:
    """Yield the values of the numerals in a text, in digits. Words with a numeral, such as `一般`, give a value too."""
    for numeral in _NUMERAL.findall(text):
        yield _value(numeral)


def with_digits(text: str) -> str:
    """Return a text in which numerals that begin with digits are written in digits: `1.5万` becomes `15000`."""
    return _ROUND.sub(lambda numeral: _value(numeral.group()), text)


def _value(numeral: str) -> str:
    """Return the value of a numeral in digits. A sequence such as `二〇二六` is read digit by digit."""
    parts = _PART.findall(numeral)
    if len(parts) > 1 and all(part in _DIGITS for part in parts):
        return "".join(str(_DIGITS[part]) for part in parts)
    total = section = number = 0.0
    for part in parts:
        if part in _LARGE:
            total += (section + number or 1) * _LARGE[part]
            section = number = 0.0
        elif part in _TENS:
            section += (number or 1) * _TENS[part]
            number = 0.0
        else:
            number = _DIGITS[part] if part in _DIGITS else float(part)
    value = total + section + number
    return str(int(value)) if value.is_integer() else str(value)


class SourceText:
    """Text of a conversation, in which the names of a sentence are searched."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = _normalized("\n".join(texts))

    def contains_names_of(self, sentence: str) -> bool:
        """Return whether every name, number and path of a sentence occurs in this text."""
        return all(self._contains(name) for name in _names(_normalized(sentence)))

    def shares_words_with(self, sentence: str) -> bool:
        """Return whether at least half of the longer words of a sentence occur in this text."""
        words = set(_long_words(_normalized(sentence)))
        return len(words & self._long_words) >= _SHARED_MIN * len(words)

    def _contains(self, name: str) -> bool:
        folded = name.casefold()
        if _NUMBER.fullmatch(folded):
            return _plain(folded) in self._numbers
        if folded in self._words or _singular(folded) in self._singulars:
            return True
        if not _WORD.fullmatch(folded) and _occurs(folded, self._folded):
            return True
        return _ALTERNATIVES.fullmatch(name) is not None and all(
            map(self._contains, set(folded.split("/")) - {"and", "or"})
        )

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _numbers(self) -> frozenset[str]:
        """Numbers in this text. A version such as 1.2.3 also counts as 1.2 and 1."""
        numbers = _NUMBER.findall(self._text)
        parts = (
            part
            for number in numbers
            for part in (number, *(number[: match.start()] for match in re.finditer(r"\.", number)))
        )
        return frozenset(map(_plain, (*parts, *kanji_numbers(self._text))))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_words_of(self._text))

    @cached_property
    def _long_words(self) -> frozenset[str]:
        return frozenset(_long_words(self._text))

    @cached_property
    def _singulars(self) -> frozenset[str]:
        return frozenset(map(_singular, self._words))


def _normalized(text: str) -> str:
    """Return a text without full-width characters and separators of thousands, and with spaces between scripts."""
    plain = "".join(unicodedata.normalize("NFKC", char) if "！" <= char <= "～" else char for char in text)
    return _SCRIPT_CHANGE.sub(" ", with_digits(_GROUPED.sub("", plain)))


def _plain(number: str) -> str:
    """Return a number without leading zeros, so that 02 equals 2."""
    return number.lstrip("0") or "0"


def _names(sentence: str) -> Iterator[str]:
    """Yield the names, numbers and paths of a sentence."""
    marked = {word for span in _CODE_SPAN.findall(sentence) for word in _WORD.findall(span)}
    capitals_count = not _has_plain_capitals(sentence)
    for match in _TOKEN.finditer(sentence):
        token = _ENDING.sub("", match.group()).strip(_EDGES)
        token = _ENDING.sub("", token)
        if not token or _INITIALS.fullmatch(token) or _IN_CJK.match(token):
            continue
        if _is_code(token):
            path, _, line = token.rpartition(":")
            yield from (path, line) if path and line.isdigit() else (token,)
            continue
        starts = bool(_SENTENCE_START.search(sentence, 0, match.start()))
        if _IN_CJK.match(sentence, match.end() + 1) or _is_named_subject(token, sentence, match.end()):
            starts = False
        for index, part in enumerate(re.split(r"[-/]", token)):
            yield from _names_of_part(part, marked, starts=starts and index == 0, capitals_count=capitals_count)


def _names_of_part(part: str, marked: set[str], *, starts: bool, capitals_count: bool) -> Iterator[str]:
    if any(char.isdigit() for char in part):
        yield from _NUMBER.findall(part) if _AMOUNT.fullmatch(part) else (part,)
        return
    in_capitals = len(part) > 1 and part.isupper()
    capitalised = len(part) > 1 and part[0].isupper() and not starts
    if part in marked or (capitals_count and (in_capitals or capitalised)):
        yield part


def _is_named_subject(word: str, sentence: str, end: int) -> bool:
    """Return whether the first word of a sentence, up to `end`, is a name, as in `Redis was …` but not in `Use …`."""
    verb = _VERB_AFTER.match(sentence, end)
    return verb is not None and not _NO_NAME.match(word) and not (verb["also_plural"] and word.endswith("s"))


def _is_code(token: str) -> bool:
    """Return whether a token is a path, a file or a code identifier."""
    if "/" in token and not token.replace("/", "").isdigit():
        return True
    if "_" in token or "::" in token or token.startswith("--") or "\\" in token:
        return True
    humps = any(_HUMP.search(word) for word in _WORD.findall(token))
    return humps or re.search(r"[^\W\d_]\w*\.\w*[^\W\d_]", token) is not None


def _has_plain_capitals(sentence: str) -> bool:
    """Return whether capitals do not indicate names, as in headlines and in German."""
    words = [word for word in _WORD.findall(sentence)[1:] if len(word) >= _LONG]
    capitalised = sum(word[0].isupper() for word in words)
    german = len(set(map(str.lower, _GERMAN.findall(sentence)))) >= _GERMAN_MIN
    return german or (len(words) > 1 and capitalised > _CAPITALS_MAX * len(words))


def _words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, and the parts of words in camel case."""
    for word in _WORD.findall(text):
        yield word.casefold()
        parts = _HUMP.split(word)
        if len(parts) > 1:
            yield from (part.casefold() for part in parts)


def _long_words(text: str) -> Iterator[str]:
    """Yield the words with at least `_LONG` letters, and the pairs of letters of Chinese, Japanese and Korean words."""
    for word in _words_of(text):
        if _IN_CJK.match(word):
            yield from (word[index : index + 2] for index in range(len(word) - 1))
        elif len(word) >= _LONG:
            yield word


def _singular(word: str) -> str:
    """Return a word without a plural ending."""
    if len(word) > _LONG and word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def _occurs(token: str, text: str) -> bool:
    """Return whether a token occurs in a text other than as a part of a longer word."""
    return re.search(rf"(?<!\w){re.escape(token)}(?!\w)", text) is not None
