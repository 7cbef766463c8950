"""Classification of findings as decisions, fixes, patterns, gotchas or others."""

import re
from typing import Final

from ...core.cited_answer import FindingKind
from ...core.observation import ObservationType
from ...core.query import HitKind
from ...core.results import Detail


def _anywhere(phrases: str) -> re.Pattern[str]:
    """Compile a pattern that finds any of the phrases as whole words. `phrases` are separated by `|`."""
    return re.compile(rf"\b(?:{phrases})\b", re.IGNORECASE)


_BY_TYPE: Final = {
    ObservationType.DECISION: FindingKind.DECISION,
    ObservationType.BUG_FIX: FindingKind.FIX,
    ObservationType.PATTERN: FindingKind.PATTERN,
}
_UNCHANGING: Final = frozenset({ObservationType.DEBUG, ObservationType.LEARNING})
"""Types of observations that describe no change. A root cause in such an observation is not a fix."""
_FIX: Final = re.compile(
    r"fix(?:e[sd]|ing)?\b|resolve[sd]?\b|(?:use|run|leave out) `[^`]+`|in `[^`]+`, (?:use|leave out)|`[^`]+` repairs\b",
    re.IGNORECASE,
)
"""Pattern for the start of a title that states a repair."""
_CHOICE: Final = re.compile(
    r"(?:recommend(?:s|ed)?|(?:propose|decide)[sd]?|choos(?:e|es)|chosen?|prefer(?:s|red)?)\s|opt(?:s|ed)? (?:for|to)\b"
    r"|go(?:ing)? with\b|went with\b|let['’]s use\b"
    r"|use \S.*\b(?:because|instead of|over|rather than)\b",
    re.IGNORECASE,
)
"""Pattern for the start of a title that states a choice."""
_GOTCHA: Final = _anywhere(
    "silently|turns? out|gotcha|pitfall|careful|watch out|fail(?:s|ed) (?:when|on|if|because)"
    "|does(?:n['’]t| not) work|must not|unexpected(?:ly)?|misleading|pre-existing|only works?"
)
_RULE: Final = _anywhere(
    "always|never|should (?:always|never|not|only)|in sync|conventions?|same pattern|make sure|whenever|every time"
)


def kind_of(detail: Detail, text: str) -> FindingKind:
    """Return the kind of a finding, from the kind or type of its entry, or else from its title and text.

    An uncertain kind is `OTHER`, because no label is better than a wrong one.
    """
    declared, title = detail.observation.type, detail.observation.title
    if detail.kind in {HitKind.DOCUMENT, HitKind.CODE}:
        return FindingKind.DOCUMENT
    if declared in _BY_TYPE:
        return _BY_TYPE[declared]
    if _FIX.match(title) or (declared not in _UNCHANGING and "root cause" in text.lower()):
        return FindingKind.FIX
    if _CHOICE.match(title):
        return FindingKind.DECISION
    if _GOTCHA.search(text):
        return FindingKind.GOTCHA
    return FindingKind.PATTERN if _RULE.search(title) else FindingKind.OTHER
