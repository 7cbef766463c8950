"""Withholding: exchanges that stay in the copy alone, because a person asked for it or the settings exclude them."""

from ...core.conversation import Exchange, Fact, Kind, Session, Speaker
from ..files.lines import PARSED
from ..redaction.private_spans import Unindexed, asked_for
from .exclusion import Exclusion
from .parsing import Parsed


def withhold(found: Parsed, session: Session, exclusion: Exclusion) -> None:
    """Take exchanges out of what was parsed, and count their lines under the reason."""
    place = session.cwd or next((note.value for note in found.notes if note.fact is Fact.CWD), "")
    kept: list[Exchange] = []
    for exchange in found.exchanges:
        reason = _reason(exchange, exclusion, place)
        if reason is None:
            kept.append(exchange)
        else:
            for line in {turn.line for turn in exchange.turns}:
                _count(found, line - found.start.line, reason)
    found.exchanges = kept


def withhold_all(found: Parsed) -> None:
    """Nothing of it is told, only how many lines there are."""
    for place in range(len(found.outcomes)):
        _count(found, place, Unindexed.SESSION)
    found.exchanges, found.notes = [], []


def is_withheld(exchange: Exchange) -> bool:
    """Whether the person asked to keep this exchange, or the session that it opens, out of the index."""
    return _asked(exchange) is not None


def _reason(exchange: Exchange, exclusion: Exclusion, place: str) -> Unindexed | None:
    return Unindexed.EXCLUDED if exclusion.covers(exchange.cwd or place) else _asked(exchange)


def _asked(exchange: Exchange) -> Unindexed | None:
    prompts = (turn for turn in exchange.turns if turn.kind is Kind.PROMPT and turn.speaker is Speaker.HUMAN)
    return next(filter(None, (asked_for(turn.text) for turn in prompts)), None)


def _count(found: Parsed, place: int, reason: Unindexed) -> None:
    if found.outcomes[place] == PARSED:
        found.outcomes[place] = reason
