"""Phrases that indicate lasting preferences or quoted text, one module with one table for each language.

To add a language, copy a module, list it here, and add sentences to `tests/observe/extraction/preferences.json`.
"""

from functools import cache

from .chinese import CHINESE
from .english import ENGLISH
from .french import FRENCH
from .german import GERMAN
from .japanese import JAPANESE
from .korean import KOREAN
from .language import LanguagePatterns, compiled
from .portuguese import PORTUGUESE
from .spanish import SPANISH


@cache
def languages() -> tuple[LanguagePatterns, ...]:
    """Return the patterns of all languages. The first call compiles them."""
    return tuple(map(compiled, (ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, JAPANESE, KOREAN, CHINESE)))
