"""Prices of models. The file `prices.json` lists them with their date."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

import orjson
from msgspec import Struct

from ...core.amount import DOLLAR
from ...core.config import Config
from ...core.errors import ConfigInvalid
from ...core.spending import Usage

_DATED: Final = re.compile(r"-\d{8}\Z")
_PER_MILLION: Final = DOLLAR // 1_000_000


class Price(Struct, frozen=True):
    """Prices per token in billionths of a US dollar. `source` names the price list or the setting."""

    tokens_in: int
    tokens_out: int
    cache_written: int
    cache_read: int
    source: str

    def cost(self, usage: Usage) -> int:
        """Return the cost of these tokens in billionths of a dollar."""
        return (
            usage.tokens_in * self.tokens_in
            + usage.cache_written * self.cache_written
            + usage.cache_read * self.cache_read
            + usage.tokens_out * self.tokens_out
        )

    def maximum_cost(self, size: int, tokens_out: int) -> int:
        """Return the highest possible cost of a request of `size` bytes. A token has at least one byte."""
        highest = max(self.tokens_in, self.cache_written, self.cache_read)
        return size * highest + tokens_out * self.tokens_out


def price_of(config: Config) -> Price:
    """Return the price of the configured model, from `llm_price` or else from the price list.

    Raises:
        ConfigInvalid: The price is unknown, so no budget can be enforced.
    """
    model, own = config.llm_model, config.llm_price
    if config.llm == "command":
        return Price(0, 0, 0, 0, "calls are counted instead, up to llm_calls_day")
    if own is not None:
        read, written = (round(amount * _PER_MILLION) for amount in own)
        return Price(read, written, read, read, "llm_price in config.toml")
    as_of, models = _price_list()
    found = models.get(model) or models.get(_DATED.sub("", model))
    if found is None:
        raise ConfigInvalid(
            f"the price of {model} is unknown",
            hint="Write llm_price = [IN, OUT] in config.toml: dollars per million tokens, [0, 0] for your own server.",
        )
    tokens_in, tokens_out, cache_written, cache_read = (round(amount * _PER_MILLION) for amount in found)
    return Price(tokens_in, tokens_out, cache_written, cache_read, f"price list of {as_of}")


@cache
def _price_list() -> tuple[str, dict[str, list[float]]]:
    read = orjson.loads((files(__package__) / "prices.json").read_bytes())
    return read["as_of"], read["models"]
