"""Budgets: as much of a reply as fits into so many tokens, and never more."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from ..core.conversation import Exchange, Turn
from ..core.observation import Evidence, Observation
from ..core.results import BUDGET, Detail, Hit, Timeline, TranscriptExcerpt
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
    return most if cost(most) <= budget else _between(cost, 0, most, budget)


def most_near(likely: int, cost: Callable[[int], int], most: int, budget: int) -> int:
    """The same, where about so many are likely to fit: it is looked for from there, in steps that grow."""
    fits, fails, step, place = 0, most + 1, 1, min(max(likely, 1), most)
    while fits < place < fails:
        if cost(place) <= budget:
            fits, place = place, place + step
        else:
            fails, place = place, place - step
        step *= 2
    return _between(cost, fits, fails, budget)


def _between(cost: Callable[[int], int], fits: int, fails: int, budget: int) -> int:
    """The largest number that fits, where one fits and a larger one does not."""
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle) <= budget else (fits, middle)
    return fits


def fitting_hits(hits: tuple[Hit, ...], cost: Callable[[tuple[Hit, ...]], int], budget: int) -> tuple[Hit, ...]:
    """The first ones, as many as fit; of one that does not fit, the beginnings of what it tells."""
    return _fitting(hits, cost, budget)


def fitting_details(
    details: tuple[Detail, ...], cost: Callable[[tuple[Detail, ...]], int], budget: int
) -> tuple[Detail, ...]:
    """The first ones, as many as fit; of one that does not fit, the beginnings of what it tells."""
    return _fitting(details, cost, budget)


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
        return replace(timeline, hits=_each(around(1).hits, length))

    return shortened(most_that_fit(lambda length: cost(shortened(length)), budget * PER_TOKEN, budget))


def fitting_transcript(
    transcript: TranscriptExcerpt, cost: Callable[[TranscriptExcerpt], int], budget: int
) -> TranscriptExcerpt:
    """Its first lines, as many as fit; of a single line that does not fit, the beginning of each text."""
    lines = sorted({turn.line for exchange in transcript.exchanges for turn in exchange.turns})
    if cost(transcript) <= budget:
        return transcript
    kept = most_that_fit(lambda many: cost(_first_lines(transcript, lines, many)), len(lines), budget) if lines else 0
    if kept:
        return _first_lines(transcript, lines, kept)
    one = _first_lines(transcript, lines, 1) if lines else transcript
    length = most_that_fit(lambda length: cost(_brief(one, length)), budget * PER_TOKEN, budget)
    clipped = _brief(one, length)
    if cost(clipped) <= budget:
        return clipped
    start = transcript.start_line
    return replace(_brief(one, 0), exchanges=(), end_line=start, next_line=start if lines else None)


class CutLine(NamedTuple):
    """A line of which a reply shows the beginning only: its number, the tokens of its texts in the whole, and the
    options with which `palaver read PATH LINE` shows all of it.
    """

    line: int
    tokens: int
    option: str


def cut_line(whole: TranscriptExcerpt, part: TranscriptExcerpt) -> CutLine | None:
    """The line of which a part shows the beginning only, if there is one."""
    texts, shown = ([turn for each in one.exchanges for turn in each.turns] for one in (whole, part))
    line = next((turn.line for turn, kept in zip(texts, shown, strict=False) if turn.text != kept.text), None)
    if line is None:
        return None
    tokens = sum(count(turn.text) for turn in texts if turn.line == line)
    needed = (tokens * 5 // 4 // 1000 + 2) * 1000
    # What is dearer is shortened wherever it is shown, but not as the agent wrote it.
    return CutLine(line, tokens, f"--budget {needed}" if needed <= BUDGET else "--raw")


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


def _fitting(items: tuple[_Item, ...], cost: Callable[[tuple[_Item, ...]], int], budget: int) -> tuple[_Item, ...]:
    """None where even the shortest form of the first is too much."""
    kept = most_that_fit(lambda many: cost(items[:many]), len(items), budget)
    if kept or not items:
        return items[:kept]
    length = most_that_fit(lambda room: cost(_each(items[:1], room)), budget * PER_TOKEN, budget)
    one = _each(items[:1], length)
    return one if cost(one) <= budget else ()


def _first_lines(transcript: TranscriptExcerpt, lines: list[int], many: int) -> TranscriptExcerpt:
    """The transcript up to the last of its first so many lines; it goes on at the next one."""
    if many >= len(lines):
        return transcript
    further = lines[many]
    shown = takewhile(lambda exchange: exchange.turns[0].line < further, transcript.exchanges)
    exchanges = tuple(
        replace(exchange, turns=tuple(turn for turn in exchange.turns if turn.line < further)) for exchange in shown
    )
    return replace(transcript, exchanges=exchanges, end_line=further - 1, next_line=further)


def _brief(item: _Item, length: int) -> _Item:
    """The beginnings of what an item tells, each of so many characters. Ids, places and numbers stay as they are."""
    told = {name: shorter(getattr(item, name), length) for name, shorter in _TOLD[type(item)].items()}
    return cast("_Item", item._replace(**told) if isinstance(item, Turn) else replace(cast("Any", item), **told))


def _each(items: tuple[_Item, ...], length: int) -> tuple[_Item, ...]:
    return tuple(_brief(item, length) for item in items)


def _few(items: tuple[_Item, ...], length: int) -> tuple[_Item, ...]:
    return items[: length // _EACH]


def _listed(texts: Sequence[str], length: int) -> tuple[str, ...]:
    """The first of some texts, each cut, and how many are left out."""
    kept = min(length // _EACH, _LISTED)
    if len(texts) <= kept:
        return tuple(clip(text, length) for text in texts)
    left_out = (f"… [{len(texts) - kept} more left out]",) if kept else ()
    return (*(clip(text, length) for text in texts[:kept]), *left_out)


_TOLD: Final[Mapping[type, Mapping[str, Callable[[Any, int], Any]]]] = {
    Hit: {
        **dict.fromkeys(("title", "snippet", "project"), clip),
        **dict.fromkeys(("facts", "matched"), _listed),
        "also_in": _few,
    },
    Detail: {
        **dict.fromkeys(("project", "branch", "session_title"), clip),
        "observation": _brief,
        "also_in": _few,
    },
    Observation: {
        **dict.fromkeys(("title", "subtitle", "narrative"), clip),
        **dict.fromkeys(("facts", "concepts", "files_read", "files_modified"), _listed),
        "evidence": lambda proofs, length: _each(_few(proofs, length), length),
    },
    Evidence: {"quote": clip},
    TranscriptExcerpt: {
        **dict.fromkeys(
            ("session_id", "parent_id", "project", "title", "cwd", "branch", "version", "pull_request"), clip
        ),
        "path": lambda path, length: clip(path, max(length, _EACH)),
        "exchanges": _each,
        "also_in": _few,
    },
    Exchange: {"turns": _each},
    Turn: dict.fromkeys(("text", "tool", "call"), clip),
}
"""What is shortened of each kind of item, and how."""
