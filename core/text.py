"""Text as every part of Palaver needs it: without what steers a terminal, and fit for UTF-8."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def without_ansi(text: str) -> str:
    """The text without terminal sequences, whole or cut."""
    return _ANSI.sub("", text).replace("\x1b", "") if "\x1b" in text else text


def readable(text: str) -> str:
    """The text with each lone surrogate, which neither UTF-8 nor a tokenizer can carry, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
