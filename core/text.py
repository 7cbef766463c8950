"""Text functions that remove terminal escapes, invisible characters and invalid Unicode, and that compare names."""

import re
import unicodedata
from collections.abc import Iterable

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control characters except line breaks and tabs, soft hyphens, zero-width characters, direction overrides, tags and
# other format characters, which can divide a word or carry a hidden message.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Characters that some scripts and emoji need, but that are invisible between ASCII characters and if repeated.
_JOINERS = "\u034f\u115f\u1160\u17b4\u17b5\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
UNUSUAL = f"[{_UNSEEN}{_SPACES}{_JOINERS}]".replace("\x00", "\x01")
"""Pattern for the characters that `visible` can change, except NUL. It is also valid in RE2."""
_REMOVED = re.compile(
    f"(?<=[!-~])[{_JOINERS}{_UNSEEN}]+(?=[!-~])|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f{_UNSEEN}]+|[{_UNSEEN}]"
)
_SPACE = re.compile(f"[{_SPACES}]")
_ASCII = dict.fromkeys([*range(0x09), *range(0x0E, 0x20), 0x7F])
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


def visible(text: str) -> str:
    """Return the text as replies show it: without terminal escapes and invisible characters, and with plain spaces.

    Text is redacted in this form, because a character that is not shown could hide a secret from the rules.
    """
    plain = without_ansi(text)
    if plain.isascii():
        return plain.translate(_ASCII)
    return _SPACE.sub(" ", _REMOVED.sub("", plain))


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
