"""Text functions that remove terminal escapes and invalid Unicode, and that check and compare names."""

import re
import unicodedata
from collections.abc import Iterable

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_WORD = re.compile(r"[\w.-]+")


def without_ansi(text: str) -> str:
    """Return the text without terminal escapes, including truncated escapes."""
    return _ANSI.sub("", text).replace("\x1b", "") if "\x1b" in text else text


def readable(text: str) -> str:
    """Return the text with U+FFFD in place of lone surrogates, which UTF-8 and tokenizers cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def nfc(text: str) -> str:
    """Return the text in Unicode normalization form C.

    Programs write one name in different forms: an `ü` is one character, or a `u` with a combining mark as on macOS.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_one_word(name: str, *, longest: int = 40) -> bool:
    """Return whether a name is a single word of at most `longest` characters, and therefore not a sentence.

    A word consists of letters, digits, `_`, `.` and `-`.
    """
    return len(name) <= longest and _WORD.fullmatch(name) is not None


def similar_names(name: str, known: Iterable[str], *, least: int = 75, limit: int = 3) -> list[str]:
    """Return the names with the most similar spelling, best first.

    Args:
        name: The name to compare.
        known: Names to choose from.
        least: Minimum similarity, 0 to 100.
        limit: Maximum number of names to return.
    """
    from rapidfuzz import fuzz, process  # Importing this takes 35 ms, and few commands need it.

    return [one for one, *_ in process.extract(name, list(known), scorer=fuzz.ratio, limit=limit, score_cutoff=least)]
