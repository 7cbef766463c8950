"""Concurrent processes never exceed a budget."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.archiver.store import PlannedCall, Store
from palaver.core.config import Config
from palaver.core.conversation import Kind, Speaker, Turn
from palaver.core.errors import ConfigInvalid
from palaver.core.prices import Price, Rates
from palaver.core.reports import DOLLAR, Usage, dollars
from palaver.core.tokens import count
from palaver.observe.llm.ledger import Budget, Ledger, cost_of, price_of
from palaver.observe.llm.provider import BudgetExhausted

from ...archiver.store.sample_values import decision, exchange, store_session

HOUR = 3_600_000
NOON = round(datetime(2026, 5, 31, 12, tzinfo=UTC).timestamp() * 1000)


def plan(cost: int) -> PlannedCall:
    return PlannedCall("m", "test", 1, "d", cost)


@settings(max_examples=25)
@given(
    cap=st.integers(0, 100),
    calls=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["settle", "release", "lose"]), st.integers(0, 40))),
)
def test_budget_holds_to_the_last_token(cap: int, calls: list[tuple[int, str, int]]) -> None:
    """Spent and reserved money never exceed the budget, and a call that fits is never rejected."""
    with TemporaryDirectory() as folder, Store.create(Path(folder) / "x.db") as store:
        ledger = Ledger(store, Budget({"month": cap}), "run", lambda: NOON)
        spent = 0
        for most, end, real in calls:
            if spent + most > cap:
                with pytest.raises(BudgetExhausted), store.transaction():
                    ledger.reserve(plan(most))
                continue
            with store.transaction():
                call = ledger.reserve(plan(most))
            spent += most
            if end == "settle":
                store.ledger.settle(call, Usage(), min(real, most))
                spent += min(real, most) - most
            if end == "release":
                store.ledger.release(call)
                spent -= most

        assert ledger.left() == {"month": cap - spent}
        assert ledger.spent() == spent <= cap


@pytest.mark.parametrize(
    ("span", "before", "free"),
    [
        ("hour", NOON - HOUR, False),
        ("hour", NOON - HOUR - 1, True),
        ("day", NOON - 24 * HOUR, False),
        ("day", NOON - 24 * HOUR - 1, True),
        ("month", NOON - 30 * 24 * HOUR - 12 * HOUR, False),
        ("month", NOON - 30 * 24 * HOUR - 12 * HOUR - 1, True),
    ],
)
def test_each_span_ends(tmp_path: Path, span: str, before: int, free: bool) -> None:
    """Budget periods are 60 minutes, 24 hours and a calendar month."""
    with Store.create(tmp_path / "x.db") as store:
        store.ledger.reserve("earlier", before, plan(5))
        ledger = Ledger(store, Budget({span: 5}), "run", lambda: NOON)

        assert ledger.left() == {span: 5 if free else 0}


def test_run_budget_counts_only_its_own_calls(tmp_path: Path) -> None:
    """The budget of a run counts only calls of that run."""
    with Store.create(tmp_path / "x.db") as store:
        store.ledger.reserve("earlier", NOON, plan(5))

        assert Ledger(store, Budget({"run": 5}), "run", lambda: NOON).left() == {"run": 5}


WORKER = """
import sys
from pathlib import Path
from palaver.archiver.store import PlannedCall, Store
from palaver.observe.llm.provider import BudgetExhausted
from palaver.observe.llm.ledger import Budget, Ledger

with Store.open(Path(sys.argv[1])) as store:
    ledger = Ledger(store, Budget({"month": 50}), sys.argv[2])
    try:
        while True:
            with store.transaction():
                ledger.reserve(PlannedCall("m", "test", 1, "d", 1))
    except BudgetExhausted:
        pass
"""


def test_processes_share_one_budget(tmp_path: Path) -> None:
    """Three concurrent processes reserve money without exceeding the shared budget."""
    path = tmp_path / "x.db"
    Store.create(path).close()
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(path), name]) for name in "abc"]
    assert [worker.wait(50) for worker in workers] == [0, 0, 0]

    with Store.open(path) as store:
        assert store.ledger.spent_since(0) == 50


def test_budgets_are_set_in_dollars() -> None:
    """Budgets are set in dollars, and unset budgets do not limit calls."""
    assert Budget.of(Config()).limits == {}
    assert Budget.of(Config(budget_hour=0.25, budget_month=0)).limits == {"hour": DOLLAR // 4, "month": 0}


def test_prices_are_exact() -> None:
    """The cost is tokens times price, with separate prices for cached tokens."""
    price = Price(Rates(1, 5, 0.1, 1.25, 2), "test")
    usage = Usage(tokens_in=3, cache_written=2, cache_read=1, tokens_out=7)

    assert cost_of(usage, price) == 3_000 + 2_500 + 100 + 35_000


@given(size=st.integers(0, 10**6), share=st.integers(0, 2), out=st.integers(0, 4_000))
def test_reply_never_costs_more_than_reserved(size: int, share: int, out: int) -> None:
    """A reply never costs more than its reservation, whichever of its tokens are cached."""
    price = price_of(Config(llm_model="claude-sonnet-5-5"))
    parts = [0, 0, 0]
    parts[share] = size

    assert cost_of(Usage(parts[0], parts[1], parts[2], out), price) <= price.maximum_cost(size, 4_000)


def test_dated_names_have_the_price_of_their_model() -> None:
    """A model name with a date has the price of the model."""
    assert price_of(Config(llm_model="claude-haiku-4-5-20251001")) == price_of(Config(llm_model="claude-haiku-4-5"))
    assert price_of(Config()).rates.input == 0.1


def test_unknown_price_is_an_error() -> None:
    """A model without a price is rejected, and `llm_price` overrides the price list."""
    with pytest.raises(ConfigInvalid) as caught:
        price_of(Config(llm_model="local-model"))
    assert "llm_price" in caught.value.hint
    assert cost_of(Usage(10**6, 0, 0, 10**6), price_of(Config(llm_model="local-model", llm_price=(0, 0)))) == 0
    assert price_of(Config(llm_price=(2, 4))).rates.output == 4


def test_price_is_that_of_the_server() -> None:
    """Listed prices count for the server of the list, and not for another one with the same API."""
    openai = Config(llm="openai", llm_model="gpt-5-mini")
    assert price_of(openai) == price_of(replace(openai, llm_url="https://api.openai.com/v1"))
    with pytest.raises(ConfigInvalid):
        price_of(replace(openai, llm_url="http://127.0.0.1:8000/v1"))
    assert price_of(Config(llm_url="http://127.0.0.1:8000")) == price_of(Config())


def test_amounts_are_readable() -> None:
    """Amounts are shown in cents, and small amounts with enough digits."""
    assert [dollars(amount) for amount in (0, DOLLAR, 15_000_000, 79_963)] == ["$0.00", "$1.00", "$0.01", "$0.000080"]


def test_exchanges_and_observations_are_counted_alike(tmp_path: Path) -> None:
    """The tokens of exchanges and of observations are counted by the same method in any language."""
    text, done = "배포는 항상 자정에 한다. " * 20, '{"path": "/code/shop/till.py"}' * 20
    with Store.create(tmp_path / "x.db") as store, store.transaction():
        session, source = store_session(store)
        stored = exchange(0, text, text)
        call = Turn(3, Speaker.ASSISTANT, Kind.CALL, done)
        store.exchanges.replace(session, source, 0, [replace(stored, turns=(*stored.turns, call))])
        [key] = store.items.all_keys()
        store.observations.replace(key, session, [decision("Deploys are at midnight")], "1")
        found = store.ledger.reading_costs(10)

    assert (found.exchanges, found.observations) == (1, 1)
    assert (found.dialogue_tokens, found.transcript_tokens) == (2 * count(text), 2 * count(text) + count(done))
