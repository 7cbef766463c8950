"""Language model configured by the user with a key and a budget, for extraction and for judging contradictions."""

import os
from collections.abc import Callable
from typing import Final

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.llm.ledger import Budget
from palaver.observe.llm.model_judge import SECONDS, ModelJudge
from palaver.observe.llm.provider import Provider
from palaver.observe.memory import Judge, JudgeFactory
from palaver.templates.prompts import JudgingPrompts
from palaver.templates.render import Renderer

_KEY: Final = "ANTHROPIC_API_KEY"


def why_off(config: Config) -> str:
    """Return the reason why the model is off, or an empty text if it may be called."""
    key, budget = os.environ.get(_KEY), Budget.of(config).limits
    if not key and not budget:
        return f"neither {_KEY} nor a budget in config.toml is set"
    if not key:
        return f"{_KEY} is not set"
    return "" if budget else "config.toml sets no budget, such as budget_month = 5.00"


def provider_of(config: Config, *seconds: float) -> Callable[[], Provider]:
    """Return a function that opens the provider. `seconds` replaces the provider's default timeout of a call."""

    def open_provider() -> Provider:
        return Provider(os.environ[_KEY], config.llm_url, *seconds)

    return open_provider


def judge_factory(home: Home, config: Config) -> JudgeFactory | None:
    """Return the factory of the model judge; return None if it is turned off, or has no key or budget."""
    if not config.llm_judge or why_off(config):
        return None

    def make_judge(store: Store) -> Judge:
        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return make_judge
