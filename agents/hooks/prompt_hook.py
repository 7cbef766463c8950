"""Hook for a submitted prompt: the observations of the project that are relevant to the prompt."""

import re
from typing import Final

from ...core.injection import HookEvent
from ...core.origin import Origin
from ...core.query import HitKind, Query
from ...core.results import Hit
from ...search.archive_search import ArchiveSearch
from .hook_answer import BUDGETS, HookAnswer, HookPlace, QuotedLine, quoted
from .hook_call import HookCall

SCORE_MIN: Final = 0.25
"""Minimum score of a hit. See bench/RESULTS.md, "Injection"."""
_LEAD: Final = "Past sessions of this project that may help, found by Palaver (details: `palaver show ID`)."
_HITS: Final = 3
_WORDS_MIN: Final = 4
"""Minimum number of words in a prompt for a search. Shorter prompts, such as "go on", name no topic."""
_OPERATORS: Final = re.compile(r'["“”„*`]')


def prompt_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return up to three observations that are relevant to the prompt and were not injected into the session yet."""
    lines = [QuotedLine(hit.id, hit.at, hit.title) for hit in relevant_hits(call, place) if hit.score >= SCORE_MIN]
    return quoted(place, _LEAD, lines[:_HITS], BUDGETS[HookEvent.PROMPT])


def relevant_hits(call: HookCall, place: HookPlace) -> list[Hit]:
    """Return the observations of other sessions of the project that are most similar to a prompt, best first."""
    text = " ".join(_OPERATORS.sub(" ", call.prompt).split())
    if len(text.split()) < _WORDS_MIN or text.startswith("/"):
        return []
    with ArchiveSearch(place.home, place.config.model) as search:
        project = search.project_at(place.root)
        if not project:
            return []
        query = Query.parse(
            text,
            limit=2 * _HITS,
            weak=True,
            projects=[project],
            kinds=[HitKind.OBSERVATION],
            origins=[Origin.HUMAN, Origin.ASSISTANT],
        )
        hits = search.find(query, snippets=False).hits
    return [hit for hit in hits if hit.session_id != call.session_id and hit.id not in place.shown]
