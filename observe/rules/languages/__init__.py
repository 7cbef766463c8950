"""Phrases that indicate lasting preferences or quoted text, one JSON file for each language.

To add a language, copy a file, name it in `LANGUAGES`, and add sentences to
`tests/observe/extraction/preferences.json`.
"""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from .language import Language, LanguagePatterns, compiled

LANGUAGES: Final = ("english", "german", "french", "spanish", "portuguese", "japanese", "korean", "chinese")


@cache
def languages() -> tuple[LanguagePatterns, ...]:
    """Return the patterns of all languages. The first call compiles them."""
    folder = files(__package__)
    data = (folder.joinpath(f"{name}.json").read_bytes() for name in LANGUAGES)
    return tuple(compiled(msgspec.json.decode(each, type=Language)) for each in data)
