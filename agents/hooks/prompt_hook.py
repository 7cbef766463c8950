"""Hook for a submitted prompt: the observations of the project that are relevant to it."""

import re
from typing import Final

from ...core.injection import HookEvent
from ...core.origin import Origin
from ...core.query import HitKind, Query
from ...search.archive_search import ArchiveSearch
from .hook_answer import BUDGETS, HookAnswer, HookPlace, QuotedLine, quoted
from .hook_call import HookCall

SCORE_MIN: Final = 0.3
"""Minimum score of a hit. See bench/RESULTS.md, "Injection"."""
_LEAD: Final = "Past sessions of this project that may help, found by Palaver (details: `palaver show ID`)."
_HITS: Final = 3
_WORDS_MIN: Final = 4
"""Minimum number of words of a prompt that is searched. Shorter prompts, such as "go on", name no topic."""
_OPERATORS: Final = re.compile(r'["“”„*`]')


def prompt_text(call: HookCall, place: HookPlace, least: float = SCORE_MIN) -> HookAnswer:
    """Return up to three relevant observations by the user or the assistant that the session does not contain yet."""
    text = " ".join(_OPERATORS.sub(" ", call.prompt).split())
    if len(text.split()) < _WORDS_MIN or text.startswith("/"):
        return HookAnswer()
    with ArchiveSearch(place.home, place.config.model) as search:
        project = search.project_at(place.root)
        if not project:
            return HookAnswer()
        query = Query.parse(
            text,
            limit=2 * _HITS,
            projects=[project],
            kinds=[HitKind.OBSERVATION],
            origins=[Origin.HUMAN, Origin.ASSISTANT],
        )
        hits = search.find(query, snippets=False).hits
    new = [hit for hit in hits if hit.score >= least and hit.session_id != call.session_id and hit.id not in place.shown]
    lines = [QuotedLine(hit.id, hit.at, hit.title) for hit in new[:_HITS]]
    return quoted(place, _LEAD, lines, BUDGETS[HookEvent.PROMPT])
