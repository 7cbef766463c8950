"""Budgets: as much of a reply as fits into so many tokens, and never more."""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from ..core.conversation import Exchange, Turn
from ..core.disclosure import Detail, Transcript

_FILES = 20
"""Files of each kind that are named where an observation does not fit."""


def most_that_fit(cost: Callable[[int], int], most: int, budget: int) -> int:
    """The largest number up to `most` that costs no more than the budget, for a cost that grows with it; 0 if none."""
    if cost(most) <= budget:
        return most
    fits, fails = 0, most
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle) <= budget else (fits, middle)
    return fits


def fitting_transcript(transcript: Transcript, cost: Callable[[Transcript], int], budget: int) -> Transcript:
    """Its first lines, as many as fit; of a single line that does not fit, the beginning of each text."""
    lines = sorted({turn.line for exchange in transcript.exchanges for turn in exchange.turns})
    if not lines or cost(transcript) <= budget:
        return transcript
    kept = most_that_fit(lambda count: cost(_first_lines(transcript, lines, count)), len(lines), budget)
    if kept:
        return _first_lines(transcript, lines, kept)
    one = _first_lines(transcript, lines, 1)
    longest = max(len(turn.text) for exchange in one.exchanges for turn in exchange.turns)
    return _clipped(one, most_that_fit(lambda length: cost(_clipped(one, length)), longest, budget))


def fitting_details(
    details: tuple[Detail, ...], cost: Callable[[tuple[Detail, ...]], int], budget: int
) -> tuple[Detail, ...]:
    """The first ones, as many as fit; of one that does not fit, the beginnings of what it tells."""
    kept = most_that_fit(lambda count: cost(details[:count]), len(details), budget)
    if kept or not details:
        return details[:kept]
    length = most_that_fit(lambda size: cost((_told(details[0], size),)), _longest(details[0]), budget)
    return (_told(details[0], length),)


def _longest(detail: Detail) -> int:
    it = detail.observation
    return max(map(len, (it.subtitle, it.narrative, *it.facts)))


def _first_lines(transcript: Transcript, lines: list[int], count: int) -> Transcript:
    """The transcript up to its line number `count`; it goes on at the next one."""
    if count >= len(lines):
        return transcript
    further = lines[count]
    shown = takewhile(lambda exchange: exchange.turns[0].line < further, transcript.exchanges)
    exchanges = tuple(
        replace(exchange, turns=tuple(turn for turn in exchange.turns if turn.line < further)) for exchange in shown
    )
    return replace(transcript, exchanges=exchanges, end_line=further - 1, next_line=further)


def _clipped(transcript: Transcript, length: int) -> Transcript:
    exchanges = (_clip_exchange(exchange, length) for exchange in transcript.exchanges)
    return replace(transcript, exchanges=tuple(exchanges))


def _clip_exchange(exchange: Exchange, length: int) -> Exchange:
    return replace(exchange, turns=tuple(_clip_turn(turn, length) for turn in exchange.turns))


def _clip_turn(turn: Turn, length: int) -> Turn:
    return turn._replace(text=_clip(turn.text, length))


def _told(detail: Detail, length: int) -> Detail:
    it = detail.observation
    shorter = replace(
        it,
        subtitle=_clip(it.subtitle, length),
        narrative=_clip(it.narrative, length),
        facts=tuple(_clip(fact, length) for fact in it.facts),
        files_read=it.files_read[:_FILES],
        files_modified=it.files_modified[:_FILES],
    )
    return replace(detail, observation=shorter)


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… [{len(text) - length:,} more characters left out]"
