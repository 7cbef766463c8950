"""Statements about a question that a later statement reverses: `not published`, and later `live in the registry`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...core.observation import ObservationType
from ...core.query import HitKind
from ...core.results import Detail, Hit
from .claims import FILE_NAME, Claim
from .relevance import Relevance
from .statement_pairs import StatementPair, compare

_OTHERS: Final = 3
"""Maximum number of further hits that are opened because they may reverse a statement."""
_OTHER_SCORE: Final = 0.33
"""Minimum score of such a hit, as a share of the best score."""
_ABOUT: Final = 0.4
"""Minimum share of the question's words that both statements contain, so that both are about the question."""
_OWN_WORDS: Final = 5
"""Maximum number of content words that a clause does not share with a clause of opposite polarity."""
_WORK: Final = {ObservationType.FEATURE, ObservationType.BUG_FIX, ObservationType.REFACTOR}
_STATED: Final = {HitKind.OBSERVATION, HitKind.EXCHANGE, HitKind.MEMORY}


def other_hits(hits: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """Return the best hits, among those not chosen, that may reverse a chosen one, or be reversed by it."""
    taken, best = {hit.id for hit in chosen}, max((hit.score for hit in chosen), default=0.0)
    others = (hit for hit in hits if hit.id not in taken and hit.score >= _OTHER_SCORE * best and hit.at is not None)
    return sorted(others, key=lambda hit: -hit.score)[:_OTHERS]


def find_reversals(
    details: Sequence[Detail], claims: Mapping[str, Sequence[Claim]], relevance: Relevance
) -> dict[str, str]:
    """Map the ID of each entry with a reversed statement to the ID of the newest entry that reverses it."""
    said = {
        detail.id: texts
        for detail in details
        if detail.kind in _STATED and (texts := list(_about_question(detail, claims[detail.id], relevance)))
    }
    ordered = sorted((each for each in details if each.id in said), key=lambda each: each.observation.at or 0)
    found: dict[str, str] = {}
    for place, older in enumerate(ordered):
        for newer in ordered[place + 1 :]:
            if (newer.observation.at or 0) > (older.observation.at or 0) and any(
                _is_reversed(one, other, relevance) for one in said[older.id] for other in said[newer.id]
            ):
                found[older.id] = newer.id
    return found


def _about_question(detail: Detail, claims: Sequence[Claim], relevance: Relevance) -> Iterator[str]:
    """Yield the statements of an entry that contain enough words of the question.

    Prompts and reports of changes are left out: `reader.py: ...`, or the title of a feature or a fix.
    """
    texts = [claim.text for claim in claims if not claim.is_request]
    if detail.kind != HitKind.EXCHANGE and detail.observation.type not in _WORK:
        texts.append(detail.observation.title)
    for text in dict.fromkeys(texts):
        if not FILE_NAME.match(text) and relevance.share(text) >= _ABOUT and not text.rstrip("”\"'").endswith("?"):
            yield text


def _is_reversed(older: str, newer: str, relevance: Relevance) -> bool:
    """Return whether both statements are about the same words of the question, and cannot both be true."""
    if relevance.common(older, newer) < _ABOUT:
        return False
    pair = compare(older, newer)
    return pair.is_conflict or _differ_in_polarity(pair, relevance)


def _differ_in_polarity(pair: StatementPair, relevance: Relevance) -> bool:
    """Return whether exactly one statement negates what both say about the question.

    The clauses with most common words are compared. Clauses with many words of their own report different facts.
    """
    clauses = [(len(old.stems & new.stems), old, new) for old in pair.older for new in pair.newer]
    most = max((common for common, _, _ in clauses), default=0)
    return most > 0 and all(
        old.negated != new.negated
        and relevance.common(" ".join(old.tokens), " ".join(new.tokens)) >= _ABOUT
        and max(len(old.stems), len(new.stems)) - common <= _OWN_WORDS
        for common, old, new in clauses
        if common == most
    )
