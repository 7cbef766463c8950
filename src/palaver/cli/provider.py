"""Access to the language model, which needs an API key and a budget."""

import os
from collections.abc import Callable
from typing import Final

from palaver.core.config import Config
from palaver.observe.llm.ledger import Budget
from palaver.observe.llm.provider import Anthropic, Provider

_KEY: Final = "ANTHROPIC_API_KEY"


def why_off(config: Config) -> str:
    """Return the reason why no model may be called; empty if one may."""
    key, budget = os.environ.get(_KEY), Budget.of(config).limits
    if not key and not budget:
        return f"neither {_KEY} nor a budget in config.toml is set"
    if not key:
        return f"{_KEY} is not set"
    return "" if budget else "config.toml sets no budget, such as budget_month = 5.00"


def provider_of(config: Config, *seconds: float) -> Callable[[], Provider]:
    """Return a function that opens the connection to the model.

    `seconds` limits a call; the default depends on the stage.
    """

    def opened() -> Provider:

        return Anthropic(os.environ[_KEY], config.llm_url, *seconds)

    return opened
