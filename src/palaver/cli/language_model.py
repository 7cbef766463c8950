"""Language model configured by the user, for extraction and for judging contradictions."""

import os
from collections.abc import Callable
from urllib.parse import urlsplit

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.api_keys import KEYS, OWN_KEY
from palaver.observe.llm.http_status import TIMEOUT
from palaver.observe.llm.messages_api import ANTHROPIC, MessagesApi
from palaver.observe.llm.model_judge import SECONDS, ModelJudge
from palaver.observe.llm.openai_api import OPENAI, OpenAIApi
from palaver.observe.llm.tool_turn import ToolProvider
from palaver.observe.memory import Judge, JudgeFactory
from palaver.templates.prompts import JudgingPrompts
from palaver.templates.render import Renderer


def why_off(config: Config) -> str:
    """Return the reason why the model is off, or an empty text if it may be called."""
    if config.llm == "command":
        return "" if config.llm_calls_day else "llm_calls_day is 0"
    name, needed = _key(config)
    key = os.environ.get(name) or not needed
    budget = config.may_spend
    if not key and not budget:
        return f"neither {name} nor a budget in config.toml is set"
    if not key:
        return f"{name} is not set"
    return "" if budget else "config.toml sets no budget, such as budget_month = 5.00"


def provider_of(config: Config, seconds: float = TIMEOUT) -> Callable[[], ToolProvider]:
    """Return a function that opens the provider. `seconds` is the timeout of a call."""

    def open_provider() -> ToolProvider:
        if config.llm == "command":
            return AgentCommand(config.llm_command, seconds)
        name, _ = _key(config)
        key = os.environ.get(name, "")
        if config.llm == "openai":
            return OpenAIApi(key, config.llm_url, seconds, name)
        return MessagesApi(key, config.llm_url, seconds, name)

    return open_provider


def judge_factory(home: Home, config: Config) -> JudgeFactory | None:
    """Return the factory of the model judge. Return None if the model is turned off, or has no key or budget."""
    if not config.llm_judge or why_off(config):
        return None

    def make_judge(store: Store) -> Judge:
        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return make_judge


def _key(config: Config) -> tuple[str, bool]:
    """Return the environment variable with the key, and whether the server needs a key."""
    host = urlsplit(config.llm_url or (OPENAI if config.llm == "openai" else ANTHROPIC)).hostname or ""
    return KEYS.get(host, OWN_KEY), host in KEYS
