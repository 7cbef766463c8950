"""Text into terms: what the index is made of and what a query is compared with, so that both sides agree.

User text is only ever tokenised here, never parsed as a query language (Tantivy's parser can be crashed by nesting).
"""

import re
from dataclasses import dataclass

import tantivy

VERSION = 1
"""Raise it when anything here changes: indexes of another version are rebuilt."""

PROSE = "prose"
_STEM = "english"
_LONGEST = 80

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MIXED = re.compile(r"[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z][A-Za-z0-9]*")


def analyzer() -> tantivy.TextAnalyzer:
    """Words in lower case without accents, English endings removed, nothing longer than 80 characters."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(_LONGEST),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer(_STEM),
    ):
        builder = builder.filter(step)
    return builder.build()


def expand(text: str) -> str:
    """Text with what the tokenizer cannot see made visible: parts of camelCase names, pairs of CJK characters."""
    extra = [" ".join(_HUMP.findall(name)) for name in dict.fromkeys(_MIXED.findall(text))]
    if not text.isascii():
        extra += [" ".join(pairs(run)) for run in _CJK.findall(text)]
    return f"{text}\n{' '.join(extra)}" if extra else text


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters; a single character stands for itself."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
