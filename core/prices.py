"""Prices of tokens: from the settings, else from the price list that the package `genai-prices` contains.

The package can also fetch a newer list, but Palaver never lets it. A model that no list names has no price, because the
price of a similar model can be several times as high.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct
from msgspec.structs import astuple

from .config import Config
from .conversation import Milliseconds
from .reports import DOLLAR, NanoDollars
from .tokens import TokenCounts

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import MatchLogic, ModelPrice

_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})\Z")
"""Release date at the end of a model's name, such as `claude-opus-4-5-20251101`."""
_FIELDS: Final = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
"""Names of the rates in the package, in the order of `Rates`."""


class Rates(Struct, frozen=True):
    """US dollars per million tokens, by the types of `TokenCounts`."""

    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float

    @classmethod
    def of(cls, amounts: Sequence[float]) -> "Rates":
        """Return the rates of two or five amounts. Without other rates, cached tokens cost as much as input."""
        tokens_in, tokens_out, *cached = amounts
        return cls(tokens_in, tokens_out, *(cached or [tokens_in] * 3))

    @property
    def highest_input(self) -> float:
        """Highest rate of a token that is sent."""
        return max(self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h)


class Price(Struct, frozen=True):
    """Price of a model's tokens.

    Attributes:
        rates: Rates of a request that no tier covers.
        source: Where the rates are from, such as a setting.
        as_of: Date of the price list, or None for a setting.
        tiers: Rates of long requests, after the number of sent tokens above which they apply, in ascending order.
    """

    rates: Rates
    source: str
    as_of: date | None = None
    tiers: tuple[tuple[int, Rates], ...] = ()

    def cost(self, counts: TokenCounts) -> NanoDollars:
        """Return the cost of one reply. The rates of a tier apply to all its tokens."""
        sent = counts.total - counts.output
        rates = next((rates for start, rates in reversed(self.tiers) if sent > start), self.rates)
        return _nano_dollars(sum(rate * count for rate, count in zip(astuple(rates), counts.by_type, strict=True)))

    def maximum_cost(self, size: int, tokens_out: int) -> NanoDollars:
        """Return the highest possible cost of a request of `size` bytes. A token has at least one byte."""
        possible = [self.rates, *(rates for start, rates in self.tiers if size > start)]
        return max(_nano_dollars(size * rates.highest_input + tokens_out * rates.output) for rates in possible)


class PriceList:
    """Prices of models. The settings `llm_price` and `prices` override the list of the package."""

    def __init__(self, config: Config) -> None:
        self._own = {
            model: Price(Rates.of(amounts), "prices in config.toml") for model, amounts in config.prices.items()
        }
        if config.llm_price is not None:
            self._own[config.llm_model] = Price(Rates.of(config.llm_price), "llm_price in config.toml")

    def price(self, model: str, provider: str = "", at: Milliseconds | None = None) -> Price | None:
        """Return the price of a model, or None if it is unknown.

        Args:
            model: Name as transcripts and requests contain it. A release date at its end can be missing in the list.
            provider: Name or API address of the provider. By default, the company that makes the model.
            at: Time of the request. By default, now.
        """
        if own := self._own.get(model) or self._own.get(_DATED.sub("", model)):
            return own
        moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at / 1000, UTC)
        return _listed(model.lower(), provider, moment)


def _listed(model: str, provider: str, moment: datetime) -> Price | None:
    snapshot, as_of = _bundled()
    address = provider if "://" in provider else None
    try:
        _, found = snapshot.find_provider_model(model, None, None if address else provider or None, address)
    except LookupError:
        return None
    # The package also accepts names that only begin like a listed one.
    if not {model, _DATED.sub("", model)} & {found.id, *_names(found.match)}:
        return None
    listed = found.get_prices(moment)
    rates = _rates(listed, 0)
    if rates is None:
        return None
    starts = sorted({tier.start for name in _FIELDS for tier in getattr(getattr(listed, name), "tiers", ())})
    tiers = tuple((start, above) for start in starts if (above := _rates(listed, start + 1)))
    return Price(rates, f"price list of {as_of}", as_of, tiers)


@cache
def _bundled() -> tuple["DataSnapshot", date]:
    """Return the list in the package and its date: the newest date from which one of its prices applies."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    today = datetime.now(UTC).date()
    conditions = (
        price.constraint
        for provider in providers
        for model in provider.models
        if isinstance(model.prices, list)
        for price in model.prices
    )
    starts = (start for each in conditions if (start := getattr(each, "start_date", None)))
    return DataSnapshot(providers, from_auto_update=False), max(start for start in starts if start <= today)


def _names(clause: "MatchLogic") -> Iterator[str]:
    """Yield the names in a rule by which the package recognises a model. Patterns are not names."""
    for field, value in vars(clause).items():
        if isinstance(value, list):
            for part in cast("list[MatchLogic]", value):
                yield from _names(part)
        elif field != "regex":
            yield value.lower()


def _rates(listed: "ModelPrice", sent: int) -> Rates | None:
    """Return the rates of a request with this many sent tokens. A missing rate of cached tokens is that of input."""
    tokens_in, tokens_out, cache_read, write_5m, write_1h = (_rate(listed, name, sent) for name in _FIELDS)
    if tokens_in is None or tokens_out is None:
        return None
    write_5m = tokens_in if write_5m is None else write_5m
    write_1h = write_5m if write_1h is None else write_1h
    return Rates(tokens_in, tokens_out, tokens_in if cache_read is None else cache_read, write_5m, write_1h)


def _rate(listed: "ModelPrice", name: str, sent: int) -> float | None:
    amount = getattr(listed, name)
    for tier in getattr(amount, "tiers", ()):
        if sent > tier.start:
            amount = tier.price
    return None if amount is None else float(getattr(amount, "base", amount))


def _nano_dollars(amount: float) -> NanoDollars:
    """Convert tokens times dollars per million tokens."""
    return round(amount * DOLLAR / _MILLION)
