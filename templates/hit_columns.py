"""Columns of a hit in a list (ID, date, session, type and title), and the token limit of details.

In layer 2, an observation has a maximum of tokens. Its least important parts are omitted.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..core.conversation import show_day
from ..core.observation import DETAIL_TOKENS, Observation
from ..core.results import Detail, Hit
from .environment import label
from .quote import brief
from .truncation import fit_items, largest_fitting

_SENTENCE: Final = re.compile(r"\s*(?:[^\n]{1,240}?[.!?](?=\s)|[^\n]{1,240}(?=\s|$)|[^\n]{1,240})")
"""Pattern for a line, a sentence, or up to 240 characters of a long sentence."""
_FACTS, _NARRATIVE = 3, 500
"""Number of facts, and number of characters of the narrative, that have priority over the modified files."""
_NAMES: Final = 3
"""Number of names of files or concepts that are always shown. The other names are shown only if they fit."""
_SHORT_PROMPT: Final = 3
"""Maximum number of words of a prompt that says too little without the title of its session."""
_SESSION: Final = 12
"""Maximum tokens of a session ID."""


def limited(whole: Detail, cost: Callable[[Detail], int], limit: int = DETAIL_TOKENS) -> Detail:
    """Return the detail without its least important parts if it costs more than `limit` tokens.

    `left_out` counts the omitted parts. If the detail is too large even without these parts, its remaining texts
    are shortened.
    """
    if cost(whole) <= limit:
        return whole
    order = _by_importance(whole.observation)

    def first(number: int) -> Detail:
        kept = _with_parts(whole.observation, Counter(order[:number]))
        return replace(whole, observation=kept, left_out=len(order) - number)

    kept = largest_fitting(lambda number: cost(first(number)), len(order) - 1, limit)
    shortened = () if kept else fit_items((first(0),), lambda some: cost(some[0]) if some else 0, limit)
    return shortened[0] if shortened else first(kept)


def _by_importance(observation: Observation) -> list[str]:
    """Return the name of the field of each part, with the most important part first.

    A field with several parts, such as `facts`, occurs once per part.
    """
    ends = _ends(observation.narrative)
    early = sum(end <= _NARRATIVE for end in ends)
    ranked = (
        ("subtitle", bool(observation.lead)),
        ("narrative", early),
        ("facts", len(observation.facts[:_FACTS])),
        ("files_modified", bool(observation.files_modified)),
        ("facts", len(observation.facts[_FACTS:])),
        ("evidence", len(observation.new_quotes)),
        ("narrative", len(ends) - early),
        ("concepts", bool(observation.concepts)),
        ("files_read", bool(observation.files_read)),
        *((name, len(getattr(observation, name)) > _NAMES) for name in ("files_modified", "concepts", "files_read")),
    )
    return [field for field, number in ranked for _ in range(number)]


def _with_parts(observation: Observation, parts: Counter[str]) -> Observation:
    """Return the observation with only the first parts of each field.

    `parts` maps the name of a field to the number of parts to keep.
    """
    ends = _ends(observation.narrative)
    narrative = observation.narrative[: ends[parts["narrative"] - 1]] if parts["narrative"] else ""
    some = replace(
        observation,
        subtitle=observation.lead if parts["subtitle"] else "",
        narrative=f"{narrative} …" if 0 < parts["narrative"] < len(ends) else narrative,
        facts=observation.facts[: parts["facts"]],
        concepts=_names(observation.concepts, parts["concepts"]),
        files_read=_names(observation.files_read, parts["files_read"]),
        files_modified=_names(observation.files_modified, parts["files_modified"]),
    )
    # Also omit a quote that repeats an omitted text.
    hidden = {*some.new_quotes}.difference(observation.new_quotes[: parts["evidence"]])
    return replace(some, evidence=tuple(proof for proof in observation.quotes if proof not in hidden))


def _names(every: Sequence[str], parts: int) -> tuple[str, ...]:
    return tuple(every) if parts > 1 else tuple(every[: _NAMES * parts])


def _ends(text: str) -> list[int]:
    """Return the end position of each sentence in a narrative."""
    return [part.end() for part in _SENTENCE.finditer(text)]


def complete_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit, with its full date and its session."""
    return [_joined(hit, show_day(hit.at), hit.short_session_id) for hit in hits]


def brief_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit. The year is shown only where it changes, so that more of the title fits."""
    rows, year = list[str](), ""
    for hit in hits:
        day, before = show_day(hit.at), year
        year = f"{day[:4]}-"
        rows.append(_joined(hit, day.removeprefix(before) if before else day, hit.short_session_id))
    return rows


def _joined(hit: Hit, day: str, session: str) -> str:
    if hit.kind == "session":  # its ID already is that of the session
        return f"{hit.id} {day}"
    return " ".join(filter(None, (hit.id, day, brief(session, _SESSION), label(hit))))


def listed_title(hit: Hit) -> str:
    """Return the title of a hit in a list. The title of the session follows a short prompt, such as `commit`."""
    short = hit.kind == "exchange" and len(hit.title.split()) <= _SHORT_PROMPT
    named = hit.session_title and hit.session_title.casefold() != hit.title.casefold()
    return f"{hit.title} in: {hit.session_title}" if short and named else hit.title
