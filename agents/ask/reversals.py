"""Older statements that a newer statement reverses.

Rules compare an older and a newer statement: `not published` is reversed by a later `live in the registry`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.conversation import Milliseconds
from ...core.observation import ObservationType
from ...core.query import HitKind
from ...core.results import Detail, Hit
from ...search.query.relevance import Relevance
from ...search.query.tokenizer import terms
from .citation_check import FILE_NAME, Claim

if TYPE_CHECKING:
    from ...observe.memory.rule_judge import ParsedStatement


_PAIRS: Final = 256
"""Maximum number of pairs of statements whose comparison is cached. The same hits occur in many searches."""


class StatementPair(NamedTuple):
    """Verdict of `RuleJudge` on a newer statement, and the clauses of both statements."""

    verdict: str
    is_conflict: bool
    older: "Sequence[ParsedStatement]"
    newer: "Sequence[ParsedStatement]"


@lru_cache(_PAIRS)
def compare(older: str, newer: str) -> StatementPair:
    """Compare two statements."""
    # Few answers compare statements, and loading the rules takes 40 ms.
    from ...observe.memory import rule_judge

    judgement = rule_judge.RuleJudge().judge(older, newer)
    clauses = rule_judge.clauses(older), rule_judge.clauses(newer)
    return StatementPair(judgement.verdict, judgement.conflict, *clauses)


_OTHERS: Final = 3
"""Maximum number of further hits that are opened because they may reverse a statement."""
_OTHER_SCORE: Final = 0.33
"""Minimum score of such a hit, as a share of the best score."""
_ABOUT: Final = 0.4
"""Minimum share of the question's words that both statements contain, so that both are about the question."""
_OWN_WORDS: Final = 5
"""Maximum number of content words that a clause does not share with a clause of opposite polarity."""
_CAUSE: Final = re.compile(r"\b(?:because(?: of)?|caused by|due to|(?:root )?cause(?::| is| was))", re.IGNORECASE)
_WORK: Final = {ObservationType.FEATURE, ObservationType.BUG_FIX, ObservationType.REFACTOR}
_STATED: Final = {HitKind.OBSERVATION, HitKind.EXCHANGE, HitKind.MEMORY}


class Statements(NamedTuple):
    """Statements of one entry about a question, and the time of the entry."""

    id: str
    at: Milliseconds
    texts: tuple[str, ...]


def other_hits(hits: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """Return the best hits, among those not chosen, that may reverse a chosen one, or be reversed by it."""
    taken, best = {hit.id for hit in chosen}, max((hit.score for hit in chosen), default=0.0)
    others = (hit for hit in hits if hit.id not in taken and hit.score >= _OTHER_SCORE * best and hit.at is not None)
    return sorted(others, key=lambda hit: -hit.score)[:_OTHERS]


def find_reversals(
    details: Sequence[Detail], claims: Mapping[str, Sequence[Claim]], relevance: Relevance
) -> dict[str, str]:
    """Map the ID of each entry with a reversed statement to the ID of the newest entry that reverses it.

    Session cards are not compared: they repeat statements of the whole session, with the time of its end.
    """
    entries = (
        Statements(detail.id, detail.observation.at or 0, tuple(_about_question(detail, claims[detail.id], relevance)))
        for detail in details
        if detail.kind in _STATED and not detail.observation.is_summary
    )
    return _reversed_by([entry for entry in entries if entry.texts], relevance)


def _reversed_by(entries: Sequence[Statements], relevance: Relevance) -> dict[str, str]:
    """Map the ID of each entry with a reversed statement to the ID of the newest entry that reverses it."""
    ordered, found = sorted(entries, key=lambda entry: entry.at), dict[str, str]()
    for place, older in enumerate(ordered):
        for newer in ordered[place + 1 :]:
            if newer.at > older.at and any(
                _is_reversed(one, other, relevance) for one in older.texts for other in newer.texts
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
    if relevance.common(older, newer) < _ABOUT or _name_same_cause(older, newer):
        return False
    pair = compare(older, newer)
    return pair.is_conflict or _differ_in_polarity(pair, relevance)


def _name_same_cause(older: str, newer: str) -> bool:
    """Return whether both statements explain something by a cause in mostly the same words."""
    first, second = (frozenset(terms(_CAUSE.split(text, maxsplit=1)[-1])) for text in (older, newer))
    both = _CAUSE.search(older) is not None and _CAUSE.search(newer) is not None
    return both and 2 * len(first & second) >= min(len(first), len(second)) > 0


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
