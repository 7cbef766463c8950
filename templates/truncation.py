"""Truncation of replies to a token budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ..core.results import BUDGET, Timeline, TranscriptExcerpt
from ..core.tokens import count

MIN_BUDGET: Final = 500
"""Minimum budget in tokens. A smaller budget has no room for the instructions to continue."""
CHARS_PER_TOKEN: Final = 8
"""Upper bound of characters per token, for texts long enough to be truncated."""
_ENTRY: Final = 40
"""Characters per kept entry: a tuple that is shortened to n characters keeps its first n / 40 entries."""
_NOTE: Final = 60
"""Minimum length in characters of a text that gets a note about omitted characters."""
_UNTOUCHED: Final = frozenset(
    {"id", "memory_id", "path", "file_path", "cursor", "anchor", "session_id", "kind", "type"}
)
"""Fields that are never shortened, because callers send them back or look them up."""

_Item = TypeVar("_Item")


def largest_fitting(cost: Callable[[int], int], most: int, budget: int) -> int:
    """Return the largest number up to `most` with a cost within the budget, or 0.

    `cost` must increase with the number.
    """
    if cost(most) <= budget:
        return most
    fits, fails = 0, most
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle) <= budget else (fits, middle)
    return fits


def fit_items(items: tuple[_Item, ...], cost: Callable[[tuple[_Item, ...]], int], budget: int) -> tuple[_Item, ...]:
    """Return as many of the first items as have a total cost within the budget.

    If no item fits, shorten the texts of the first item. If even this item is too large, return an empty result.
    """
    kept = largest_fitting(lambda number: cost(items[:number]), len(items), budget)
    if kept or not items:
        return items[:kept]
    shortened = (_fit_texts(items[0], lambda item: cost((item,)), budget),)
    return shortened if cost(shortened) <= budget else ()


def fit_timeline(timeline: Timeline, cost: Callable[[Timeline], int], budget: int) -> Timeline:
    """Return the timeline with only the hits nearest to its anchor, as many as fit into the budget."""
    anchor = next((index for index, hit in enumerate(timeline.hits) if hit.id == timeline.anchor), 0)

    def around(number: int) -> Timeline:
        first = max(0, min(anchor - number // 2, len(timeline.hits) - number))
        return replace(timeline, hits=timeline.hits[first : first + number])

    kept = largest_fitting(lambda number: cost(around(max(1, number))), len(timeline.hits), budget)
    return around(kept) if kept else _fit_texts(around(1), cost, budget)


def fit_transcript(
    transcript: TranscriptExcerpt, cost: Callable[[TranscriptExcerpt], int], budget: int
) -> TranscriptExcerpt:
    """Return the transcript with as many of its first lines as fit into the budget.

    If no line fits, return the first line with shortened texts.
    """
    if cost(transcript) <= budget:
        return transcript
    lines = sorted({turn.line for exchange in transcript.exchanges for turn in exchange.turns})
    kept = largest_fitting(lambda number: cost(_first_lines(transcript, lines, number)), len(lines), budget)
    if kept:
        return _first_lines(transcript, lines, kept)
    part = _fit_texts(_first_lines(transcript, lines, 1), cost, budget)
    if cost(part) <= budget:
        return part
    start = transcript.start_line
    return replace(_shortened(part, 0), exchanges=(), end_line=start, next_line=start if lines else None)


class TruncatedLine(NamedTuple):
    """Line whose text is shortened: its number, its full cost in tokens, and the option that shows all of it."""

    line: int
    tokens: int
    option: str


def truncated_line(whole: TranscriptExcerpt, part: TranscriptExcerpt) -> TruncatedLine | None:
    """Return the line that `part` shows only partially, or None if it shows every line completely."""
    texts, kept_texts = (
        [(turn.line, turn.text) for exchange in excerpt.exchanges for turn in exchange.turns]
        for excerpt in (whole, part)
    )
    line = next((line for (line, text), (_, kept) in zip(texts, kept_texts, strict=False) if text != kept), None)
    if line is None:
        return None
    tokens = sum(count(text) for number, text in texts if number == line)
    needed = (tokens * 5 // 4 // 1000 + 2) * 1000
    # Above the default budget, the page itself shortens texts, so only the raw line is complete.
    return TruncatedLine(line, tokens, f"--budget {needed}" if needed <= BUDGET else "--raw")


def fit_rows(text: str, budget: int, closing: str, hint: str = "") -> str:
    """Return a page within the budget. Rows at the end that exceed it are replaced with one row.

    This row states their number and the hint. `closing` is the end marker of a block. It is appended if the page is
    truncated inside the block.
    """
    if count(text) <= budget:
        return text
    rows, opening = text.rstrip("\n").split("\n"), closing.replace("/", "")

    def first(number: int) -> str:
        is_open = rows[:number].count(opening) > rows[:number].count(closing)
        note = f"[{len(rows) - number} more rows do not fit into {budget} tokens{hint}.]"
        return "\n".join([*rows[:number], *([closing] if is_open else []), note]) + "\n"

    return first(largest_fitting(lambda number: count(first(number)), len(rows), budget))


def json_cost(value: object) -> int:
    """Return the tokens of a value written as JSON."""
    return count(orjson.dumps(value).decode())


def fit_json(value: Mapping[str, Any], budget: int) -> dict[str, Any]:
    """Shorten a JSON object until it fits: first lists of objects, then all lists, then all texts."""
    if json_cost(value) <= budget:
        return dict(value)
    short = _shorter(value, 1, tables=False)
    fields: dict[str, Any] = {}
    for most, shorten in (
        (_longest(value, list), partial(_shorter, value, tables=True)),
        (_longest(value, list), partial(_shorter, value, tables=False)),
        (_longest(value, str), partial(_clipped, short)),
    ):
        kept = largest_fitting(partial(_json_cost_of, shorten), most, budget) if most else 0
        fields = shorten(size=kept or 1)
        if kept:
            break
    return fields


def _json_cost_of(shorten: Callable[..., object], size: int) -> int:
    return json_cost(shorten(size=size))


def clip(text: str, length: int) -> str:
    """Return the beginning of a text, with a note about the number of omitted characters."""
    if len(text) <= length:
        return text
    return f"{text[:length]}… [{len(text) - length:,} more characters left out]" if length >= _NOTE else text[:length]


def _fit_texts(item: _Item, cost: Callable[[_Item], int], budget: int) -> _Item:
    """Return the item with its texts shortened as little as necessary."""
    most = budget * CHARS_PER_TOKEN
    return _shortened(item, largest_fitting(lambda length: cost(_shortened(item, length)), most, budget))


def _first_lines(transcript: TranscriptExcerpt, lines: list[int], number: int) -> TranscriptExcerpt:
    """Return the transcript with its first `number` lines, and `next_line` as the line to continue with."""
    if number >= len(lines):
        return transcript
    following = lines[number]
    exchanges = tuple(
        replace(exchange, turns=tuple(turn for turn in exchange.turns if turn.line < following))
        for exchange in transcript.exchanges
        if exchange.turns and exchange.turns[0].line < following
    )
    return replace(transcript, exchanges=exchanges, end_line=following - 1, next_line=following)


def _shortened(value: _Item, length: int) -> _Item:
    """Shorten the texts of a value to at most `length` characters, and its lists in the same proportion."""
    return cast("_Item", _shorten(value, length))


def _shorten(value: Any, length: int) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else clip(value, length)
    if isinstance(value, Struct):
        names = (name for name in value.__struct_fields__ if name not in _UNTOUCHED)
        return replace(value, **{name: _shorten(getattr(value, name), length) for name in names})
    if not isinstance(value, tuple):
        return value
    items = cast("tuple[object, ...]", value)
    if hasattr(items, "_fields"):
        return cast("Any", type(items))(*(_shorten(item, length) for item in items))
    kept = tuple(_shorten(item, length) for item in items[: max(1, length // _ENTRY)])
    if len(kept) == len(items) or not isinstance(items[0], str):
        return kept
    return (*kept, f"… [{len(items) - len(kept):,} more left out]") if length >= _NOTE else ()


def _longest(value: object, kind: type[list[Any]] | type[str]) -> int:
    """Return the length of the longest list or text inside a JSON value."""
    return max((len(cast("list[Any]", inner)) for inner in _walk(value) if isinstance(inner, kind)), default=0)


def _walk(value: object) -> Iterator[object]:
    yield value
    inside: Iterable[object] = ()
    if isinstance(value, Mapping):
        inside = cast("Mapping[str, object]", value).values()
    elif isinstance(value, list):
        inside = cast("list[object]", value)
    for inner in inside:
        yield from _walk(inner)


def _shorter(value: Any, size: int, *, tables: bool) -> Any:
    """Return a JSON value with at most `size` entries per list. With `tables`, only lists of objects are shortened."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {name: _shorter(item, size, tables=tables) for name, item in fields.items()}
    if not isinstance(value, list):
        return value
    entries = cast("list[object]", value)
    kept = entries if tables and not all(isinstance(item, dict) for item in entries) else entries[:size]
    return [_shorter(item, size, tables=tables) for item in kept]


def _clipped(value: Any, size: int) -> Any:
    """Return a JSON value with texts of at most `size` characters."""
    if isinstance(value, dict):
        return {name: _clipped(item, size) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_clipped(item, size) for item in cast("list[object]", value)]
    return f"{value[:size]}…" if isinstance(value, str) and len(value) > size else value
