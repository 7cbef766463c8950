"""Truncate replies to a number of tokens and mark those that were truncated.

Only replies whose call names no limit of its own are truncated: a page of a list has as many entries as were asked for.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import orjson

from ...core import tokens
from ...templates.budget import most_that_fit

BUDGET: Final = 10_000
"""Tokens of a reply at most, where the call names no limit of its own."""
_HINT: Final = "Truncated to fit: ask for less, or use narrower filters."


def fitting(envelope: Mapping[str, Any], budget: int = BUDGET) -> dict[str, Any]:
    """Return the envelope as it is if it fits, else with `truncated`: shorten lists of objects, then every list, then
    every text.

    Totals still count everything.
    """
    whole = dict(envelope)
    if _cost(whole) <= budget:
        return whole
    marked: dict[str, Any] = _marked(whole)
    for longest, cut in ((_longest_list, _shorter_tables), (_longest_list, _shorter_lists), (_longest_text, _clipped)):
        most = longest(marked)
        kept = most_that_fit(_costing(marked, cut), most, budget) if most else 0
        marked = cut(marked, kept or 1)
        if kept:
            break
    return marked


def _marked(envelope: dict[str, Any]) -> dict[str, Any]:
    """With word of the cut, beside the fields that were cut."""
    told = {"truncated": True, "hint": _HINT}
    return {**envelope, "data": {**envelope["data"], **told}} if "data" in envelope else {**envelope, **told}


def _cost(value: object) -> int:
    return tokens.count(orjson.dumps(value).decode())


def _costing(envelope: dict[str, Any], cut: Callable[[Any, int], Any]) -> Callable[[int], int]:
    return lambda size: _cost(cut(envelope, size))


def _walk(value: object) -> Iterator[object]:
    yield value
    inside: list[object] = []
    if isinstance(value, dict):
        inside = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        inside = cast("list[object]", value)
    for each in inside:
        yield from _walk(each)


def _longest_list(value: object) -> int:
    return max((len(cast("list[object]", each)) for each in _walk(value) if isinstance(each, list)), default=0)


def _longest_text(value: object) -> int:
    return max((len(each) for each in _walk(value) if isinstance(each, str)), default=0)


def _shorter_tables(value: Any, size: int) -> Any:
    return _shorter(value, size, tables=True)


def _shorter_lists(value: Any, size: int) -> Any:
    return _shorter(value, size, tables=False)


def _shorter(value: Any, size: int, *, tables: bool) -> Any:
    """With every list, or those of objects alone, ending after so many entries."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _shorter(each, size, tables=tables) for name, each in fields.items()}
    if not isinstance(value, list):
        return value
    entries = cast("list[object]", value)
    shown = entries if tables and not all(isinstance(each, dict) for each in entries) else entries[:size]
    return [_shorter(each, size, tables=tables) for each in shown]


def _clipped(value: Any, length: int) -> Any:
    """With every text ending after so many characters."""
    if isinstance(value, dict):
        return {name: _clipped(each, length) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_clipped(each, length) for each in cast("list[object]", value)]
    return f"{value[:length]}…" if isinstance(value, str) and len(value) > length else value
