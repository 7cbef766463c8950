"""Text into terms: what the index is made of and what a query is compared with, so that both sides agree.

User text is only ever tokenised here, never parsed as a query language (Tantivy's parser can be crashed by nesting).
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

import tantivy

from ...core.memo import Memo
from ...core.memory import PROJECT, project_namespace
from ...core.text import readable

VERSION = 3
"""Raise it when anything here changes: indexes of another version are rebuilt."""

PROSE = "prose"
_STEM = "english"
_LONGEST = 80
_KEPT = 1 << 16
_SHORT, _ASKED = 1_000, 2_048
"""Characters of a text whose terms are remembered, and how many such texts."""

_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
_PICTOGRAPHS = r"\u2600-\u27bf\U0001f000-\U0001faff"
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MIXED = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]++")
_SNAKE = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9]++(?:_[A-Za-z0-9]++)+")
_LATIN = bytes(range(256)).decode("latin-1")
_SHAPE = re.sub(r"\s", " ", re.sub("[A-Z]", "A", re.sub("[a-z]", "a", _LATIN))).encode("latin-1")
_COMPOUND = (b"aA", b"AAa", b"_")
"""What of a word's shape tells that `_MIXED` or `_SNAKE` may match in it."""


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


_ANALYZER = analyzer()


def stems(text: str) -> list[str]:
    """The terms of a text as it stands, in order; `expand` it first where names should be taken apart."""
    return _ANALYZER.analyze(text)


def terms(text: str) -> tuple[str, ...]:
    """The terms of a query or a word of one, each once. What one search asks for many times is remembered."""
    return _TERMS.made(text, _terms) if len(text) <= _SHORT else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stems(expand(text))))


def expand(text: str) -> str:
    """Text with what the tokenizer cannot see made visible.

    CamelCase names are followed by their parts, snake_case names by themselves in one piece, CJK characters are given
    in pairs, and emoji as words.
    """
    text = spaced(text)
    extra = " ".join(_names(text))
    return f"{text}\n{extra}" if extra else text


def spaced(text: str) -> str:
    """Text with CJK characters in pairs and emoji as words, each where it stands."""
    text = composed(text)
    return text if text.isascii() or not _wide().search(text) else _wide_runs().sub(_words, text)


def composed(text: str) -> str:
    """Text in which a letter with its marks is one character, and what only looks otherwise is the same."""
    return text if text.isascii() else unicodedata.normalize("NFKC", readable(text))


def verbatim(phrase: str) -> re.Pattern[str]:
    """What was quoted, in a text that is `composed`: its letters and signs, big or small, with blanks of any kind where
    it has some, and no part of a longer word.
    """
    letter = rf"[^\W_{_IDEOGRAPHS}]"
    said = r"\s+".join(map(re.escape, composed(phrase).split()))
    # Whoever types has no other sign for it.
    said = re.sub("['’]", "['’]", said)
    # To make these ranges of letters both big and small takes 10 ms.
    return re.compile(rf"(?<!{letter}(?={letter}))(?i:{said})(?!(?<={letter}){letter})")


@cache
def _wide() -> re.Pattern[str]:
    """A character that is no word to the tokenizer. Compiling takes 3 ms, and most queries hold none."""
    return re.compile(f"[{_IDEOGRAPHS}{_PICTOGRAPHS}]")


@cache
def _wide_runs() -> re.Pattern[str]:
    return re.compile(f"[{_IDEOGRAPHS}]+|([{_PICTOGRAPHS}])")


def _words(run: re.Match[str]) -> str:
    words = [f"u{ord(run[1]):x}"] if run[1] else pairs(run[0])
    return f" {' '.join(words)} "


def forms(terms: Iterable[str]) -> re.Pattern[str]:
    """What may be words with any of these terms; CJK characters are found as the pairs they are.

    Endings were removed, so a word begins with its term; whether it has it is to be asked of the few that do.
    """
    wanted = list(terms)
    begun = "|".join(re.escape(term.removesuffix("i")) for term in wanted if term.isascii())
    plain = [re.escape(term) for term in wanted if not term.isascii()]
    return re.compile("|".join([rf"\b(?:{begun})\w*"] * bool(begun) + plain), re.IGNORECASE)


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters; a single character stands for itself."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def label(value: str) -> str:
    """A type, concept or project as it is indexed and asked for."""
    return readable(value).strip().lower().rstrip("/")


def project_labels(names: Iterable[str]) -> Iterator[str]:
    """Yield the labels of projects: sessions have a project's name, memories its namespace, and either finds both."""
    for name in names:
        yield label(name)
        bare = name.removeprefix(PROJECT)
        if "/" not in bare and (namespace := project_namespace(bare)) != "global":
            yield from (label(bare), label(namespace))


def path_label(path: str, folder: str = "") -> str:
    """A file's path as it is indexed and asked for: its parts backwards, so that an end of it is a beginning here.

    A relative path is taken to lie in `folder`. An absolute one ends with a slash.
    """
    plain = posixpath.normpath(posixpath.join(*(label(part).replace("\\", "/") for part in (folder, path))))
    return "/".join(reversed(plain.split("/")))


def _names(text: str) -> Iterator[str]:
    """The parts of camelCase names, and snake_case names in one piece, each word's once."""
    return filter(None, map(_KNOWN.__getitem__, dict.fromkeys(_compounds(text))))


def _compounds(text: str) -> list[str]:
    """The words that may hold such a name, in order. They are found by their shape, as few of all words do."""
    shape = f"{text} ".encode("latin-1", "replace").translate(_SHAPE)
    words: dict[int, str] = {}
    for sign in _COMPOUND:
        at = shape.find(sign)
        while at >= 0:
            start, end = shape.rfind(b" ", 0, at) + 1, shape.find(b" ", at)
            words[start] = text[start:end]
            at = shape.find(sign, end)
    return [words[start] for start in sorted(words)]


def _taken_apart(word: str) -> str:
    parts = [] if word.islower() else [part for name in _MIXED.findall(word) for part in _HUMP.findall(name)]
    whole = [name.replace("_", "") for name in _SNAKE.findall(word)] if "_" in word else []
    return " ".join(parts + whole)


class _Known(dict[str, str]):
    """What words are taken apart into. The same ones come again and again; long ones do not, and are not kept."""

    def __missing__(self, word: str) -> str:
        parts = _taken_apart(word)
        if len(word) <= _LONGEST:
            if len(self) >= _KEPT:
                self.clear()
            self[word] = parts
        return parts


_KNOWN = _Known()
_TERMS = Memo[str, tuple[str, ...]](_ASKED)
