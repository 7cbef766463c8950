"""Budgets: as much of a reply as fits into so many tokens, and never more."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final, TypeVar

from ..core.conversation import Exchange, Turn
from ..core.disclosure import Detail, Hit, Timeline, Transcript
from ..core.tokens import count

LEAST: Final = 500
"""Tokens that every reply may have: below that there is no room for what says how to go on."""
_LISTED: Final = 11
"""Names and facts that are listed where an item does not fit."""
_EACH: Final = 40
"""Characters of room from which a list gets one more entry."""
_MARK: Final = 60
"""Characters of a text from which it is worth saying how many more there were."""
PER_TOKEN: Final = 8
"""Characters that no token has more of, in a text that is worth cutting."""

_Item = TypeVar("_Item")


def most_that_fit(cost: Callable[[int], int], most: int, budget: int) -> int:
    """The largest number up to `most` that costs no more than the budget, for a cost that grows with it; 0 if none."""
    if cost(most) <= budget:
        return most
    fits, fails = 0, most
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle) <= budget else (fits, middle)
    return fits


def fitting_hits(hits: tuple[Hit, ...], cost: Callable[[tuple[Hit, ...]], int], budget: int) -> tuple[Hit, ...]:
    """The first ones, as many as fit; of one that does not fit, the beginnings of what it tells."""
    return _fitting(hits, cost, budget, _brief_hit)


def fitting_details(
    details: tuple[Detail, ...], cost: Callable[[tuple[Detail, ...]], int], budget: int
) -> tuple[Detail, ...]:
    """The first ones, as many as fit; of one that does not fit, the beginnings of what it tells."""
    return _fitting(details, cost, budget, _brief_detail)


def fitting_timeline(timeline: Timeline, cost: Callable[[Timeline], int], budget: int) -> Timeline:
    """What stands nearest to the hit that was asked for, as much as fits."""
    places = [place for place, hit in enumerate(timeline.hits) if hit.id == timeline.anchor]
    anchor = places[0] if places else 0

    def around(many: int) -> Timeline:
        first = max(0, min(anchor - many // 2, len(timeline.hits) - many))
        return replace(timeline, hits=timeline.hits[first : first + many])

    kept = most_that_fit(lambda many: cost(around(max(1, many))), len(timeline.hits), budget)
    if kept:
        return around(kept)

    def shortened(length: int) -> Timeline:
        return replace(timeline, hits=tuple(_brief_hit(hit, length) for hit in around(1).hits))

    return shortened(most_that_fit(lambda length: cost(shortened(length)), budget * PER_TOKEN, budget))


def fitting_transcript(transcript: Transcript, cost: Callable[[Transcript], int], budget: int) -> Transcript:
    """Its first lines, as many as fit; of a single line that does not fit, the beginning of each text."""
    lines = sorted({turn.line for exchange in transcript.exchanges for turn in exchange.turns})
    if cost(transcript) <= budget:
        return transcript
    kept = most_that_fit(lambda count: cost(_first_lines(transcript, lines, count)), len(lines), budget) if lines else 0
    if kept:
        return _first_lines(transcript, lines, kept)
    one = _first_lines(transcript, lines, 1) if lines else transcript
    length = most_that_fit(lambda length: cost(_brief_transcript(one, length)), budget * PER_TOKEN, budget)
    clipped = _brief_transcript(one, length)
    if cost(clipped) <= budget:
        return clipped
    start = transcript.start_line
    return replace(_brief_transcript(one, 0), exchanges=(), end_line=start, next_line=start if lines else None)


def rows_that_fit(text: str, budget: int, closing: str, hint: str = "") -> str:
    """A page whose last rows are left out where it is dearer than the budget, with a row that says so and ends with the
    hint. `closing` is a row that has to follow where the page is cut before it, because an earlier one opens it.
    """
    if count(text) <= budget:
        return text
    rows, opening = text.rstrip("\n").split("\n"), closing.replace("/", "")

    def first(many: int) -> str:
        open_still = rows[:many].count(opening) > rows[:many].count(closing)
        note = f"[{len(rows) - many} more rows do not fit into {budget} tokens{hint}.]"
        return "\n".join([*rows[:many], *([closing] if open_still else []), note]) + "\n"

    return first(most_that_fit(lambda many: count(first(many)), len(rows), budget))


def clip(text: str, length: int) -> str:
    """The beginning of a text, and how much of it is left out."""
    if len(text) <= length:
        return text
    return f"{text[:length]}… [{len(text) - length:,} more characters left out]" if length >= _MARK else text[:length]


def _fitting(
    items: tuple[_Item, ...],
    cost: Callable[[tuple[_Item, ...]], int],
    budget: int,
    brief: Callable[[_Item, int], _Item],
) -> tuple[_Item, ...]:
    """None where even the shortest form of the first is too much."""
    kept = most_that_fit(lambda count: cost(items[:count]), len(items), budget)
    if kept or not items:
        return items[:kept]
    length = most_that_fit(lambda room: cost((brief(items[0], room),)), budget * PER_TOKEN, budget)
    one = (brief(items[0], length),)
    return one if cost(one) <= budget else ()


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


def _brief_transcript(transcript: Transcript, length: int) -> Transcript:
    return replace(
        transcript,
        exchanges=tuple(_brief_exchange(exchange, length) for exchange in transcript.exchanges),
        session_id=clip(transcript.session_id, length),
        parent_id=clip(transcript.parent_id, length),
        project=clip(transcript.project, length),
        title=clip(transcript.title, length),
        cwd=clip(transcript.cwd, length),
        branch=clip(transcript.branch, length),
        version=clip(transcript.version, length),
        pull_request=clip(transcript.pull_request, length),
        path=clip(transcript.path, max(length, _EACH)),
        also_in=transcript.also_in[: length // _EACH],
    )


def _brief_exchange(exchange: Exchange, length: int) -> Exchange:
    return replace(exchange, turns=tuple(_brief_turn(turn, length) for turn in exchange.turns))


def _brief_turn(turn: Turn, length: int) -> Turn:
    return turn._replace(text=clip(turn.text, length), tool=clip(turn.tool, length), call=clip(turn.call, length))


def _brief_hit(hit: Hit, length: int) -> Hit:
    return replace(
        hit,
        title=clip(hit.title, length),
        snippet=clip(hit.snippet, length),
        facts=_listed(hit.facts, length),
        project=clip(hit.project, length),
        matched=_listed(hit.matched, length),
        also_in=hit.also_in[: length // _EACH],
    )


def _brief_detail(detail: Detail, length: int) -> Detail:
    it = detail.observation
    shorter = replace(
        it,
        title=clip(it.title, length),
        subtitle=clip(it.subtitle, length),
        narrative=clip(it.narrative, length),
        facts=_listed(it.facts, length),
        concepts=_listed(it.concepts, length),
        files_read=_listed(it.files_read, length),
        files_modified=_listed(it.files_modified, length),
        evidence=tuple(replace(one, quote=clip(one.quote, length)) for one in it.evidence[: length // _EACH]),
    )
    return replace(
        detail,
        observation=shorter,
        project=clip(detail.project, length),
        branch=clip(detail.branch, length),
        session_title=clip(detail.session_title, length),
        also_in=detail.also_in[: length // _EACH],
    )


def _listed(texts: Sequence[str], length: int) -> tuple[str, ...]:
    """The first of some texts, each cut, and how many are left out."""
    kept = min(length // _EACH, _LISTED)
    if len(texts) <= kept:
        return tuple(clip(text, length) for text in texts)
    left_out = (f"… [{len(texts) - kept} more left out]",) if kept else ()
    return (*(clip(text, length) for text in texts[:kept]), *left_out)
