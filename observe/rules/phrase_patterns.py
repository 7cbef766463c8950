"""Patterns for the lists of phrases in `phrases.json`.

Each list has a name, `<module>.<constant>`, and a form. A phrase is a regular expression that ignores case:

- `anywhere`: the phrase occurs as whole words.
- `at_start`: the text begins with the phrase.
- `whole_text`: the text is the phrase, with optional closing punctuation.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

QUESTION_WORDS: Final = "what|why|which|who|where|when|how"
_FORMS: Final = {
    "anywhere": r"(?<!\w)(?:{})(?!\w)",
    "at_start": r"\A(?:{})(?!\w)",
    "whole_text": r"\A(?:{})[.!:]*\Z",
}


class PhrasePattern:
    """Pattern for a list of phrases, compiled on first use, because a hook or server uses only a few of all lists."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        [(form, listed)] = _lists()[self._name].items()
        return re.compile(_FORMS[form].format("|".join(listed)), re.IGNORECASE)

    @cached_property
    def search(self) -> Callable[[str], re.Match[str] | None]:
        """The method `search` of the compiled pattern."""
        return self._compiled.search

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        """The method `match` of the compiled pattern."""
        return self._compiled.match


def phrases(name: str) -> PhrasePattern:
    """Return the pattern for the list with this name."""
    return PhrasePattern(name)


@cache
def _lists() -> dict[str, dict[str, list[str]]]:
    data = files(__package__).joinpath("phrases.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, list[str]]])
