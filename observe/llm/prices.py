"""Prices: what a model's tokens cost. The table is data with a date, `prices.json`."""

import re
from functools import cache
from importlib.resources import files

import orjson
from msgspec import Struct

from ...core.errors import ConfigInvalid
from ...core.money import DOLLAR
from ...core.spending import Usage

_DATED = re.compile(r"-\d{8}\Z")
_PER_MILLION = DOLLAR // 1_000_000


class Price(Struct, frozen=True):
    """Billionths of a dollar for a token. `source` says since when the price is known, or that it is the person's."""

    tokens_in: int
    tokens_out: int
    cache_written: int
    cache_read: int
    source: str

    def cost(self, usage: Usage, *, batch: bool = False) -> int:
        """What these tokens cost. A batch costs half, rounded up."""
        whole = (
            usage.tokens_in * self.tokens_in
            + usage.cache_written * self.cache_written
            + usage.cache_read * self.cache_read
            + usage.tokens_out * self.tokens_out
        )
        return -(-whole // 2) if batch else whole

    def at_most(self, size: int, tokens_out: int, *, batch: bool = False) -> int:
        """The most that a request of `size` bytes can cost: a token is at least one byte long."""
        dearest = max(self.tokens_in, self.cache_written, self.cache_read)
        whole = size * dearest + tokens_out * self.tokens_out
        return -(-whole // 2) if batch else whole


def price_of(model: str, own: tuple[float, float] | None = None) -> Price:
    """The price of a model; `own` (dollars per million tokens in and out) goes before the table.

    Raises `ConfigInvalid` when nobody knows it: a budget cannot be held without.
    """
    if own is not None:
        read, written = (round(amount * _PER_MILLION) for amount in own)
        return Price(read, written, read, read, "llm_price in config.toml")
    as_of, models = _table()
    found = models.get(model) or models.get(_DATED.sub("", model))
    if found is None:
        raise ConfigInvalid(
            f"the price of {model} is not known",
            hint="Write llm_price = [IN, OUT] in config.toml: dollars per million tokens, [0, 0] for your own server.",
        )
    tokens_in, tokens_out, cache_written, cache_read = (round(amount * _PER_MILLION) for amount in found)
    return Price(tokens_in, tokens_out, cache_written, cache_read, f"price list of {as_of}")


@cache
def _table() -> tuple[str, dict[str, list[float]]]:
    read = orjson.loads((files(__package__) / "prices.json").read_bytes())
    return read["as_of"], read["models"]
