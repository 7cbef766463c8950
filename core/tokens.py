"""Estimates of the tokens of a text, computed without a tokenizer."""

import re
from collections import Counter
from functools import lru_cache
from typing import Final

# Patterns and tokens per match. They are fitted to the larger of two real counts (o200k and Anthropic's published
# tokenizer) over transcripts, code, identifiers, dates and a dozen languages.
_WORDS = (
    (re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"), 1.22),  # words, and the words inside camelCase
    (re.compile(r"(?<!\S)[A-Za-z][a-z]*(?![^\s.,:;)!?])"), -0.13),  # a whole word with its space is cheaper
    (re.compile(r"[a-z]{10,14}"), 0.9),  # long words are split
    (re.compile(r"[A-Z]{2,3}(?![a-z])"), 0.25),
    (re.compile(r"\d{1,3}"), 1.04),
    (re.compile(r"\d{4,6}"), 0.55),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 1.05),
)
_NEWLINE, _GAP = 0.15, 0.7
_GAPS = re.compile(r" {3,}")  # and tabs
_OTHER = (
    ("\u2e80-\u303f \u3400-\u9fff \uf900-\ufaff \uff00-\uffef", 0.85),  # Han
    ("\u3040-\u30ff", 1.0),  # kana
    ("\uac00-\ud7af \u1100-\u11ff", 1.25),  # Hangul
    ("\u0080-\u024f", 0.9),  # Latin with diacritics
    ("\u0370-\u05ff", 0.6),  # Greek, Cyrillic, Hebrew
    ("\u0600-\u1fff", 1.1),  # Arabic to Georgian, Indic scripts
    ("\u2000-\u2e7f", 0.9),  # typographic characters, arrows, box drawing
    ("\U00010000-\U0010ffff", 3.6),  # emoji
)
_COSTS: Final = (*(each for _, each in _WORDS), _NEWLINE, _GAP, *(each for _, each in _OTHER))
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_CACHE_SIZE: Final = 1 << 14


def count(text: str) -> int:
    """Estimate the tokens of a text for current models, with a bias towards overestimation.

    Accuracy was measured on 1,231 transcript texts of at least 50 tokens outside the training set. The reference was
    the larger count of two tokenizers (o200k and Anthropic's). Estimates were 3.7 % too high on average, and within
    14.6 % for 95 % of the texts. For shorter texts, they were within 23 %. Compared with o200k alone, they were 16 %
    too high. An estimate takes about 0.2 ms for 2,000 characters if the results of its words are cached.
    """
    words = tuple(map(sum, zip(*map(_counts, text.split()), strict=False))) or _NONE
    gaps = len(_GAPS.findall(text)) if "   " in text else 0
    found = [*words, text.count("\n"), gaps + text.count("\t"), *[0] * len(_OTHER)]
    if not text.isascii():
        for character, times in Counter("".join(_NOT_ASCII.findall(text))).items():
            for index in _indices(character):
                found[index - len(_OTHER)] += times
    return round(sum(times * each for times, each in zip(found, _COSTS, strict=True)))


@lru_cache(_CACHE_SIZE)
def _indices(character: str) -> tuple[int, ...]:
    """Return the indices of the entries of `_OTHER` that match a character.

    This compares characters, because compiling regular expressions would take longer than most estimates.
    """
    entries = enumerate(_OTHER)
    return tuple(index for index, (ranges, _) in entries if any(r[0] <= character <= r[2] for r in ranges.split(" ")))


@lru_cache(_CACHE_SIZE)
def _counts(word: str) -> tuple[int, ...]:
    """Return the number of matches of each pattern of `_WORDS` in a word. Most words recur, so results are cached."""
    return tuple([len(pattern.findall(word)) for pattern, _ in _WORDS])


_NONE: Final = (0,) * len(_WORDS)
