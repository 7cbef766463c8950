"""The language model of the settings, or the reason why no model is called."""

import os
from collections.abc import Callable
from urllib.parse import urlsplit

from ...core.config import Config
from .agent_command import AgentCommand
from .http_replies import TIMEOUT
from .messages_api import ANTHROPIC, MessagesApi
from .model_settings import KEYS, OWN_KEY
from .openai_api import OPENAI, OpenAIApi
from .provider import ToolProvider


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


def _key(config: Config) -> tuple[str, bool]:
    """Return the environment variable with the key, and whether the server needs a key."""
    host = urlsplit(config.llm_url or (OPENAI if config.llm == "openai" else ANTHROPIC)).hostname or ""
    return KEYS.get(host, OWN_KEY), host in KEYS
