"""Preferences, standing instructions and corrections in the typed parts of a prompt."""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from msgspec import Struct

from ..rules.languages import languages
from ..rules.prompt_parts import MASK, PartOrigin, prompt_parts, typed_text

_LENGTH_MAX: Final = 320
_WORDS_MIN: Final = 3
_SENTENCE: Final = re.compile(
    r".+?(?:(?<!\w\.\w)(?:(?<!\b[A-Za-z])|(?<=\s-[A-Za-z]))(?<!\betc)(?<!\bvs)(?<!\bca)[.!?…]+[\"'”’)\]]*(?=\s|\Z)|[。！？]|\Z)"
)
_WORD: Final = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\d_]+?(?=[\u3040-\u9fff\uac00-\ud7af]|[\W\d_]|\Z)")
_COMMAND: Final = re.compile(r"\s*/[\w:-]+\s")
_QUESTION: Final = re.compile(
    r"""[?？]["'”’)\s]*\Z | [吗呢][。\s]*\Z | (?:べきです|でしょう|のです|んです|必要があります)か[。\s]*\Z
    | (?:인가요|할까요?|는지|나요)[.\s]*\Z
    | \A\W*(?:(?:also|and|but|so|ok|okay)\W+)*
      (?:should|shall|do(?!\ not)|does|did|is|are|why|what|how|when\ should|can\ we
      |warum|wieso|sollen?|sollten|pourquoi|est-ce|faut-il|doit-on|por\ qué|deberíamos|debería|por\ que|devo|devemos)\b
    | \A\W*(?:なぜ|どうして|왜|为什么|为何|是否|要不要)""",
    re.IGNORECASE | re.VERBOSE,
)


class Certainty(IntEnum):
    """Certainty that a sentence states a lasting preference."""

    NONE = 0
    CORRECTION = 1
    """Correction of an agent, which may apply to the current task only."""
    RULE = 2
    """Rule that does not say how long it applies: "always run the linter"."""
    LASTING = 3
    """Rule that says that it applies permanently: "from now on"."""


class StatedSentence(Struct, frozen=True):
    """Typed sentence that states a preference or corrects an agent, verbatim."""

    text: str
    certainty: Certainty

    @property
    def words(self) -> frozenset[str]:
        """Words of the sentence in lower case, used to compare corrections."""
        return frozenset(word.lower() for word in _WORD.findall(self.text))


def stated_sentences(prompt: str) -> Iterator[StatedSentence]:
    """Yield the typed sentences of a prompt that state a preference or correct an agent.

    A limit such as "for this PR" also applies to the following sentences of its line, unless they say that they are
    permanent. Sentences after a question such as "does this still apply?" are ignored, because they may belong to the
    text that the question is about.
    """
    for part in prompt_parts(prompt):
        if part.origin is not PartOrigin.TYPED:
            continue
        limited = may_be_quoted = False
        masked = typed_text(part.text)
        command = _COMMAND.match(masked)
        for span in _SENTENCE.finditer(masked, command.end() if command else 0):
            text, plain = part.text[span.start() : span.end()].strip(), span.group().strip()
            certainty = sentence_certainty(plain)
            limited = limited or any(each.limited.search(plain) for each in languages())
            if not may_be_quoted and (certainty is Certainty.LASTING or (certainty and not limited)):
                yield StatedSentence(text, certainty)
            may_be_quoted = may_be_quoted or _asks_about_text(plain)


def _asks_about_text(sentence: str) -> bool:
    """Return whether a sentence asks about the text that follows it: "does this still apply?"."""
    if not _QUESTION.search(sentence):
        return False
    return any(each.references.search(sentence) or each.sources.search(sentence) for each in languages())


def sentence_certainty(sentence: str) -> Certainty:
    """Return the certainty that a sentence with masked quotations states a lasting preference."""
    fits = len(sentence) <= _LENGTH_MAX and len(_WORD.findall(sentence)) >= _WORDS_MIN
    if not fits or sentence.endswith((":", "：")) or _QUESTION.search(sentence) or sentence.startswith(MASK):
        return Certainty.NONE
    rule = _without_reason(sentence)
    if any(each.limited.search(rule) or each.references.search(rule) for each in languages()):
        return Certainty.NONE
    for certainty, patterns in (
        (Certainty.LASTING, (each.lasting for each in languages())),
        (Certainty.RULE, (each.rules for each in languages())),
        (Certainty.CORRECTION, (each.corrections for each in languages())),
    ):
        if any(pattern.search(sentence) for pattern in patterns):
            return certainty
    return Certainty.NONE


def _without_reason(sentence: str) -> str:
    """Return a sentence without its reason: `never mock it, because this hides errors` becomes `never mock it,`."""
    starts = [found.start() for each in languages() if (found := each.reasons.search(sentence))]
    rule = sentence[: min(starts, default=len(sentence))]
    return rule if len(_WORD.findall(rule)) >= _WORDS_MIN else sentence
