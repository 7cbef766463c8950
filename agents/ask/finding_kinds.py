"""Classification of findings as decisions, fixes, patterns, gotchas or others."""

import re
from typing import Final

from ...core.cited_answer import FindingKind
from ...core.observation import ObservationType


def _anywhere(phrases: str) -> re.Pattern[str]:
    """Compile a pattern that finds any of the phrases as whole words. `phrases` are separated by `|`."""
    return re.compile(rf"\b(?:{phrases})\b", re.IGNORECASE)


_BY_TYPE: Final = {
    ObservationType.DECISION: FindingKind.DECISION,
    ObservationType.BUG_FIX: FindingKind.FIX,
    ObservationType.DEBUG: FindingKind.FIX,
    ObservationType.PATTERN: FindingKind.PATTERN,
}
_CHOICE: Final = _anywhere(
    "recommend(?:s|ed)?|propose[sd]?|decided|chose|chosen|opted|go(?:ing)? with|went with|prefer(?:red|s)?|let['’]s use"
)
_FIX: Final = re.compile(r"fix(?:e[sd]|ing)?\b|`[^`]+` repairs\b|resolve[sd]?\b", re.IGNORECASE)
_GOTCHA: Final = _anywhere(
    "silently|turns? out|gotcha|pitfall|careful|watch out|fail(?:s|ed) (?:when|on|if|because)|breaks?|cannot"
    "|does(?:n['’]t| not) work|must not|unexpected(?:ly)?|misleading|pre-existing|only works?|otherwise"
)
_RULE: Final = _anywhere(
    "always|never|must|should (?:always|never|not|only)|in sync|conventions?|same pattern|make sure|whenever|every time"
    "|enforces?|required"
)


def kind_of(declared: ObservationType, title: str, text: str) -> FindingKind:
    """Return the kind of a finding, from the type of its observation or else from the words of its title and text."""
    if declared in _BY_TYPE:
        return _BY_TYPE[declared]
    if _FIX.match(title) or "root cause" in text.lower():
        return FindingKind.FIX
    if _CHOICE.search(title):
        return FindingKind.DECISION
    if _GOTCHA.search(text):
        return FindingKind.GOTCHA
    if _CHOICE.search(text):
        return FindingKind.DECISION
    return FindingKind.PATTERN if _RULE.search(text) else FindingKind.OTHER
