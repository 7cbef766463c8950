"""Priced: JSON that says how many tokens it costs itself."""

from typing import TypedDict, TypeVar

import orjson

from ..core.tokens import count


class PricedJson(TypedDict):
    """What a reply costs as it is written, this figure included."""

    tokens: int


_Shape = TypeVar("_Shape", bound=PricedJson)


def priced(shape: _Shape) -> _Shape:
    """The object with what it costs."""
    shape["tokens"] = cost(shape)
    shape["tokens"] = cost(shape)
    return shape


def cost(shape: object) -> int:
    """What an object costs, written as JSON."""
    return count(orjson.dumps(shape).decode())
