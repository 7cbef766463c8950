"""Priced: JSON that says how many tokens it costs itself."""

from typing import TypedDict, TypeVar

import orjson

from ..core.tokens import count


class PricedJson(TypedDict):
    """What a reply costs as it is written, this figure included."""

    tokens: int


_Shape = TypeVar("_Shape", bound=PricedJson)
_LIKELY = 1_000
"""A figure with as many digits as most replies cost. What a figure costs itself is up to its digits alone."""


def priced(shape: _Shape) -> _Shape:
    """The object with what it costs."""
    told, price = 0, _LIKELY
    while len(str(told)) != len(str(price)):
        shape["tokens"] = told = price
        price = cost(shape)
    shape["tokens"] = price
    return shape


def cost(shape: object) -> int:
    """What an object costs, written as JSON."""
    return count(orjson.dumps(shape).decode())
