"""Phrases that indicate lasting preferences or quoted text, one JSON file for each language.

To add a language, copy a file, name it in `LANGUAGES`, and add sentences to
`tests/observe/extraction/preferences.json`. Each phrase is a regular expression that ignores case.
"""

import re
from functools import cache
from typing import Final

from msgspec import Struct

from ....core.runtime import read_data


class Language(Struct, frozen=True):
    """Phrases of one language.

    Attributes:
        openers: Words that may stand before a rule: "and", "please", "btw". They also start a clause in a sentence.
        lasting: Beginnings of clauses that state a rule beyond the current task: "from now on", "remember that".
        rules: Beginnings of clauses that state a rule, unless the text limits it: "always run", "never push".
        limited: Words that limit a rule to the current task or to a short time: "for this PR", "for now".
        references: Words that refer to something that the sentence does not name: "this function", "do it like that".
        reasons: Words that begin the reason for a rule: "because", "so that". Limits and references in a reason
            do not count.
        corrections: Beginnings of clauses that correct an agent. A correction is proposed as a preference if it occurs
            in two sessions.
        sources: Names of texts by other authors: "review comment", "README". Paragraphs after such a name may be pasted
            text.
        attributions: Phrases directly before the words of another author: "the docs say".
        spaced: False if words are not separated by spaces. Phrases then count anywhere in a sentence.
    """

    openers: tuple[str, ...]
    lasting: tuple[str, ...]
    rules: tuple[str, ...]
    limited: tuple[str, ...]
    references: tuple[str, ...]
    corrections: tuple[str, ...]
    sources: tuple[str, ...]
    attributions: tuple[str, ...]
    reasons: tuple[str, ...] = ("(?!)",)
    spaced: bool = True


class LanguagePatterns(Struct, frozen=True):
    """Compiled phrases of one language."""

    openers: re.Pattern[str]
    lasting: re.Pattern[str]
    rules: re.Pattern[str]
    limited: re.Pattern[str]
    references: re.Pattern[str]
    corrections: re.Pattern[str]
    sources: re.Pattern[str]
    attributions: re.Pattern[str]
    reasons: re.Pattern[str]


def compiled(language: Language) -> LanguagePatterns:
    """Compile the phrases of a language."""
    openers, corrections = "|".join(language.openers), "|".join(language.corrections)
    clause = rf"(?:\A\W*|[,;(–—]\s*|\s(?=(?:{openers})\W))(?:(?:{openers})[,:.!]*\s+)*" if language.spaced else ""
    start, end = (r"(?<!\w)", r"(?!\w)") if language.spaced else ("", "")

    def at_clause(listed: str) -> re.Pattern[str]:
        return re.compile(rf"{clause}(?:{listed})", re.IGNORECASE)

    def anywhere(listed: str) -> re.Pattern[str]:
        return re.compile(rf"{start}(?:{listed}){end}", re.IGNORECASE)

    return LanguagePatterns(
        openers=re.compile(rf"(?:(?:{openers})\W*)+", re.IGNORECASE),
        lasting=at_clause("|".join(language.lasting)),
        rules=at_clause("|".join(language.rules)),
        limited=anywhere("|".join(language.limited)),
        references=anywhere("|".join(language.references)),
        corrections=re.compile(rf"\A\W*(?:(?:{openers})[,:.!]*\s*)*(?:{corrections})", re.IGNORECASE),
        sources=anywhere("|".join(language.sources)),
        attributions=anywhere("|".join(language.attributions)),
        reasons=anywhere("|".join(language.reasons)),
    )


LANGUAGES: Final = ("english", "german", "french", "spanish", "portuguese", "japanese", "korean", "chinese")


@cache
def languages() -> tuple[LanguagePatterns, ...]:
    """Return the patterns of all languages. The first call compiles them."""
    return tuple(compiled(read_data(__file__, f"{name}.json", Language)) for name in LANGUAGES)
