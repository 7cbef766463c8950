"""Statistics of language model calls."""

from ...archiver.store import Store
from ...core.config import Config
from ...core.home import Home
from ...core.spending import Stats
from .ledger import Budget, Ledger

_COMPARED = 100
"""Number of most recent exchanges whose tokens are compared with those of their observations. This takes 0.5 s."""


def load_stats(home: Home, config: Config) -> Stats:
    """Return costs, budgets, replies and token savings of a home.

    Raises:
        StoreMissing: The home has no database.
    """
    with Store.of(home) as store:
        ledger = Ledger(store, Budget.of(config), run="")
        return Stats(
            spent=store.ledger.by_model(),
            left=ledger.left(),
            calls_left=ledger.calls_left(config.llm_name),
            replies=store.ledger.outcomes(),
            reading=store.ledger.reading_costs(_COMPARED),
            injections=store.injections.totals(),
        )
