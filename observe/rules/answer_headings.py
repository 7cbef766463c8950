"""Headings of an answer that state a result, such as `Verdict: possible`.

A line that introduces a list, such as `I found two causes:`, counts as a heading too.
"""

import re
from collections.abc import Iterable

from ...core.sentences import strip_markdown
from .phrase_patterns import phrases
from .salience import CHANGED, is_noise, is_status
from .statements import Heading
from .user_request import is_specific

_SHORTEST = 20
_NUMBER = re.compile(r"\s*[a-z]?\d{1,2}[.)]\s+", re.IGNORECASE)
_PART = re.compile(r"\W*(?:bug|issue|problem|step|phase|part|option)\s\#?\d", re.IGNORECASE)
"""Pattern for a heading that only numbers a topic, such as `Step 2` or `Bug #1`."""
_LOCATION = re.compile(
    r"""\s+[—–-]\s+[\w./-]+\.\w{1,5}(?::[\d,–-]+)?$|\s\((?:[\w./-]+\.\w{1,5}(?::[^()]*)?|fixed|done|lines?\s[^()]*)\)$
    |,?\s(?:so\sthat|such\sthat|via|before\sit|because|including)$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the removable end of a heading: a location (` — src/cache.py:12`), or a conjunction (`so that`)."""
_STATES = phrases("answer_headings.states")
"""Pattern for words of a heading that states a fact, such as `is` or `missing`."""
RESULT_WORDS = r"root\ cause|cause|verdict|conclusion|answer|result"
"""Words that name the result of an answer, as a pattern."""
VERDICT = re.compile(rf"\W*(?:{RESULT_WORDS}|tl;?dr|recommendation)\s*[:—–-]\s+\S", re.IGNORECASE)
"""Pattern for the beginning of a heading that contains the result, as in `Verdict: possible`."""
_ADVICE = re.compile(r"(?:i|we)(?:['’]d|\swould)\s(?:(?:also|still|just)\s)*(?=[a-z]{3,}\s.{12,})", re.IGNORECASE)
"""Pattern for the beginning of a recommendation, as in `I would keep the index in memory:`."""
_LEADS_ON = phrases("answer_headings.leads_on")
"""Pattern for the beginning of a heading that states no result, but introduces a text or gives advice."""
_UNFINISHED = re.compile(
    r"\b(?:in|on|at|by|to|for|with|of|as|but|it|them|lists?|includes?|contains?|displays?|shows?|look|up"
    r"|is|are|was|were|has|have|now|will|would|can|could|should|must|may)$",
    re.IGNORECASE,
)
"""Pattern for the end of an incomplete heading, which the list below completes: `The module contains`."""


_BESIDE = phrases("answer_headings.beside")
"""Pattern for the heading of a section without results: checks, next steps, options or sources."""


def is_beside(heading: str) -> bool:
    """Return whether this heading starts a section without results. A number before the heading is ignored."""
    return _BESIDE.match(strip_markdown(heading).lstrip("0123456789.) ")) is not None


def stated_headings(found: Iterable[Heading]) -> list[tuple[str, Heading]]:
    """Return the headings that state a result, in order, as pairs of plain text and heading."""
    plain = ((_plain(heading.raw), heading) for heading in found)
    return [(text, heading) for text, heading in plain if _states_result(text)]


def _plain(heading: str) -> str:
    """Return a heading without its number, its location and its colon."""
    text = _NUMBER.sub("", strip_markdown(heading).rstrip(" :."), count=1)
    return _LOCATION.sub("", text).rstrip(" :.,—–-")


def without_advice(text: str) -> str:
    """Strip `I would` from the start of a recommendation."""
    return _ADVICE.sub("", text, count=1)


def _states_result(text: str) -> bool:
    if VERDICT.match(text) or _ADVICE.match(text):
        return not _UNFINISHED.search(text)
    if len(text) < _SHORTEST or _PART.match(text) or not is_specific(text) or is_noise(text) or is_status(text):
        return False
    if _LEADS_ON.match(text) or _UNFINISHED.search(text):
        return False
    return CHANGED.match(text) is not None or _STATES.search(text) is not None
