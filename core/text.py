"""Text without terminal escapes, and valid in UTF-8."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def without_ansi(text: str) -> str:
    """Return the text without terminal escapes, whole or truncated."""
    return _ANSI.sub("", text).replace("\x1b", "") if "\x1b" in text else text


def readable(text: str) -> str:
    """Return the text with U+FFFD for lone surrogates, which UTF-8 and tokenizers cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
