"""Tests of core/prices.py."""

import socket
import subprocess
import sys
from datetime import UTC, date, datetime
from typing import Any

import pytest

from palaver.core.config import Config
from palaver.core.prices import Price, PriceList, Rates
from palaver.core.tokens import TokenCounts

MILLION = 1_000_000
DOLLAR = 1_000_000_000
OPUS = Rates(5, 25, 0.5, 6.25, 10)


def price(model: str, provider: str = "", at: int | None = None, **settings: Any) -> Price | None:
    return PriceList(Config(**settings)).price(model, provider, at)


@pytest.mark.parametrize(
    ("model", "rates"),
    [
        ("claude-opus-4-5-20251101", OPUS),
        ("claude-opus-5", OPUS),
        ("claude-sonnet-4-6", Rates(3, 15, 0.3, 3.75, 6)),
        ("claude-sonnet-4-20250514", Rates(3, 15, 0.3, 3.75, 6)),
        ("claude-3-5-sonnet-20241022", Rates(3, 15, 0.3, 3.75, 6)),
        ("gpt-5.1-codex", Rates(1.25, 10, 0.125, 1.25, 1.25)),
        ("GPT-5-mini", Rates(0.25, 2, 0.025, 0.25, 0.25)),
        ("gemini-2.5-pro", Rates(1.25, 10, 0.125, 1.25, 1.25)),
        ("kimi-k2.7-code", Rates(0.95, 4, 0.19, 0.95, 0.95)),
    ],
)
def test_listed_models_have_a_price(model: str, rates: Rates) -> None:
    """Each model that transcripts name has the rate of each type of token, and the date of the list."""
    listed = price(model)
    assert listed is not None
    assert listed.rates == rates
    assert listed.as_of is not None
    assert date(2026, 11, 1) <= listed.as_of <= datetime.now(UTC).date()
    assert listed.source == f"price list of {listed.as_of}"


@pytest.mark.parametrize(
    "model",
    [
        "",
        "<synthetic>",
        "sonnet",
        "claude-opus-4-99",
        "claude-opus-4-5-turbo",  # The package accepts this name and the next, because they begin like listed ones.
        "gemini-2.5-pro-preview-06-05",
        "gpt-5.3-codex-spark",
        "my-model",
    ],
)
def test_unknown_models_have_no_price(model: str) -> None:
    """The price of a similar model is never used."""
    assert price(model) is None


def test_every_listed_model_of_anthropic_has_own_rates_of_the_cache() -> None:
    """No rate of cached tokens is replaced by another one."""
    for model in (
        "haiku-4-5",
        "haiku-5-5",
        "sonnet-4-5",
        "sonnet-5-5",
        "opus-4-1",
        "opus-4-8",
        "opus-5-5",
        "fable-5-1",
    ):
        listed = price(f"claude-{model}")
        assert listed is not None
        rates = listed.rates
        assert rates.cache_read < rates.input < rates.cache_write_5m < rates.cache_write_1h == 2 * rates.input, model


def test_provider_selects_the_list() -> None:
    """A name or an API address selects the provider, and an unknown one has no prices."""
    assert price("claude-opus-5", "anthropic") == price("claude-opus-5", "https://api.anthropic.com") is not None
    assert price("gpt-5.1", "https://api.openai.com/v1") == price("gpt-5.1") is not None
    assert price("claude-opus-5", "openai") is None
    assert price("gpt-5.1", "http://127.0.0.1:11434/v1") is None
    assert price("gpt-5.1", "no-such-provider") is None


def test_price_is_that_of_the_day() -> None:
    """A price that has changed is that of the day of the request."""
    march, september = (round(datetime(2026, month, 1, tzinfo=UTC).timestamp() * 1000) for month in (3, 9))
    model = "claude-opus-4-6"
    before, after = (price(model, "google", at) for at in (march, september))
    assert before is not None
    assert after is not None
    assert before.tiers
    assert not after.tiers


def test_cost_is_the_sum_of_all_types() -> None:
    """Each type of token has its own rate, and a part of a cent is counted."""
    opus = Price(OPUS, "")
    assert opus.cost(TokenCounts(MILLION, MILLION, MILLION, MILLION, MILLION)) == round(46.75 * DOLLAR)
    assert opus.cost(TokenCounts(1, 0, 0, 0, 0)) == 5_000
    assert opus.cost(TokenCounts()) == 0


def test_long_requests_cost_the_rates_of_their_tier() -> None:
    """The sent tokens of a request decide its rates, for all its tokens. The highest possible cost includes them."""
    long = Price(Rates(1, 2, 1, 1, 1), "", None, ((1000, Rates(10, 20, 10, 10, 10)), (5000, Rates(30, 40, 30, 30, 30))))
    assert long.cost(TokenCounts(1000, 5000)) == 11_000_000
    assert long.cost(TokenCounts(1, 1, 1000)) == 10_030_000
    assert long.cost(TokenCounts(0, 0, 0, 0, 6000)) == 180_000_000
    assert long.maximum_cost(1000, 10) == 1_020_000
    assert long.maximum_cost(1001, 10) == 10_210_000
    gemini = price("gemini-2.5-pro")
    assert gemini is not None
    assert gemini.cost(TokenCounts(input=200_000)) == 250_000_000
    assert gemini.cost(TokenCounts(input=200_001)) == 500_002_500


def test_settings_override_the_list() -> None:
    """The tables of the settings win, with two amounts or with five. `llm_price` is that of `llm_model` alone."""
    own = {"my-model": (1.0, 2.0), "claude-opus-5": (1.0, 2.0, 3.0, 4.0, 5.0)}
    assert price("my-model", prices=own) == Price(Rates(1, 2, 1, 1, 1), "prices in config.toml")
    assert price("my-model-20270101", "openai", prices=own) == price("my-model", prices=own)
    assert price("claude-opus-5", prices=own) == Price(Rates(1, 2, 3, 4, 5), "prices in config.toml")
    settings: dict[str, Any] = {"llm_model": "claude-opus-5", "llm_price": (0, 0), "prices": own}
    assert price("claude-opus-5", **settings) == Price(Rates(0, 0, 0, 0, 0), "llm_price in config.toml")
    assert price("claude-opus-4-8", **settings) == price("claude-opus-4-8")


def test_prices_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list in the package is used, so that no connection is made."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "socket", refuse)
    assert price("claude-opus-5") is not None


def test_the_package_is_loaded_when_a_listed_price_is_needed() -> None:
    """Neither the import of the module nor a price in the settings loads the large package."""
    program = (
        "import sys; from palaver.core.prices import PriceList; from palaver.core.config import Config;"
        "price = PriceList(Config(llm_price=(1, 2))).price; price('claude-haiku-5-5');"
        "print('genai_prices' in sys.modules); price('claude-opus-5'); print('genai_prices' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
