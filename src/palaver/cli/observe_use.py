"""`palaver observe --setup --use WHAT`: configure a language model by name, after one trial call."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
from msgspec import Struct
from msgspec.structs import replace

from palaver.archiver.store import Store
from palaver.core.amount import many
from palaver.core.config import Config, Setting
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.observe.llm.api_keys import KEYS, OWN_KEY
from palaver.observe.llm.known_agents import installed_agents, known_agents
from palaver.observe.llm.local_servers import PORTS, local_servers, models_at
from palaver.observe.llm.messages_api import ANTHROPIC
from palaver.observe.llm.trial import try_model
from palaver.templates.json_output import to_json
from palaver.templates.prompts import ExtractionPrompts
from palaver.templates.quote import line

from .observe_setup import SETTINGS, save
from .output import print_json, renderer

_ADDRESS: Final = ("http://", "https://")
_SHOWN: Final = 30
"""Maximum number of models that an error lists."""
_BUDGET: Final = 5.0
"""Dollars per month, if a model costs money and no budget is set."""


class _Use(Struct, frozen=True):
    """Model to use: its settings, the names of the models of its server, and whether it needs `no-tools.toml`."""

    settings: dict[str, Setting]
    models: Sequence[str] = ()
    policy: bool = False


def set_up_unasked(
    home: Home, store: Store, config: Config, use: str, model: str | None, *, yes: bool, as_json: bool
) -> None:
    """Make one trial call with the model, show its result, and write the settings.

    Raises:
        InvalidInput: The program, the server or the model is unknown, or its price is.
        ExtractionError: The model did not answer. Nothing is written.
    """
    chosen = _chosen(home, config, use, model)
    settings: dict[str, Setting] = dict.fromkeys(SETTINGS) | chosen.settings
    tried = _with_settings(config, settings)
    if not yes:
        click.confirm(f"{line(use)} gets prompts and answers of your sessions, secrets redacted. Use it?", abort=True)
    if chosen.policy:
        save(home, {}, policy=True)
    trial = try_model(store, tried, ExtractionPrompts(renderer()))
    save(home, settings, policy=chosen.policy)
    if as_json:
        written = {name: value for name, value in chosen.settings.items() if value is not None}
        print_json({"settings": written, "trial": to_json(trial)})
        return
    spent = f"{trial.seconds:.1f} s" + (f", {trial.tokens_out:,} output tokens" if trial.tokens_out else "")
    if trial.problem:
        click.echo(f"Trial call ({spent}): the reply is not usable: {line(trial.problem)}. A larger model does better.")
    else:
        click.echo(f"Trial call ({spent}): “{line(trial.title)}”, with {many(trial.facts, 'proven fact')}.")
    named = f", model {line(tried.llm_name)}" if tried.llm != "command" else ""
    click.echo(f"Saved {home.config}{named}. Run `palaver observe` to start now. `palaver watch` sends later sessions.")


def suggestion(home: Home, config: Config) -> str:
    """Return the value of `--use` for a coding agent or a local server of this machine, or an empty text."""
    if config.llm == "command" or config.may_spend:
        return ""
    agents = [Path(agent.command[0]).name for agent in installed_agents(home.root / "no-tools.toml")]
    return next(iter([*agents, *(_named(server.name) for server in local_servers())]), "")


def _chosen(home: Home, config: Config, use: str, model: str | None) -> _Use:
    if use.startswith(_ADDRESS):
        return _server(config, use.rstrip("/"), model)
    policy = home.root / "no-tools.toml"
    if any(use == agent.command[0] for agent in known_agents(policy)):
        return _agent(policy, use, model)
    if use == "anthropic":
        return _anthropic(config, model)
    names = {_named(name): name for name in PORTS}
    if use not in names:
        known = [*(agent.command[0] for agent in known_agents(policy)), *names, "anthropic"]
        raise InvalidInput(f"Unknown model: {use}", hint=f"Use one of: {', '.join(known)}, or the address of a server.")
    found = next((server for server in local_servers() if server.name == names[use]), None)
    if found is None:
        hint = f"Start it and load a model, or use its address: --use http://127.0.0.1:{PORTS[names[use]]}/v1"
        raise InvalidInput(f"{names[use]} does not answer on this machine, or has no model", hint=hint)
    return _server(config, found.url, model)


def _agent(policy: Path, use: str, model: str | None) -> _Use:
    agent = next((each for each in installed_agents(policy) if Path(each.command[0]).name == use), None)
    if agent is None:
        raise InvalidInput(f"{use} is not on PATH", hint="Install it, or start the command where it is on PATH.")
    words = list(agent.command)
    if model and "--model" in words:
        words[words.index("--model") + 1] = model
    elif model:
        words[-1:-1] = ["--model", model]
    return _Use({"llm": "command", "llm_command": words}, policy=agent.needs_policy)


def _server(config: Config, url: str, model: str | None) -> _Use:
    """Return the settings of a server with OpenAI's API. The user's own server costs nothing."""
    key = KEYS.get(urlsplit(url).hostname or "")
    price = config.llm_price or (None if key else (0.0, 0.0))
    if price is None:
        raise InvalidInput(f"The prices of {url} are unknown", hint="Write llm_price = [IN, OUT] in config.toml first.")
    secret = os.environ.get(key or OWN_KEY, "")
    models = models_at(url, {"authorization": f"Bearer {secret}"} if secret else None)
    settings: dict[str, Setting] = {"llm": "openai", "llm_url": url, "llm_price": price}
    return _Use(settings | {"llm_model": _model(url, models, model)} | _budget(config, free=not any(price)), models)


def _anthropic(config: Config, model: str | None) -> _Use:
    headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
    if not headers["x-api-key"]:
        raise InvalidInput("ANTHROPIC_API_KEY is not set", hint="Set it to your key, then run the command again.")
    models = models_at(f"{ANTHROPIC}/v1", headers)
    name = _model(ANTHROPIC, models, model or Config().llm_model)
    return _Use({"llm": "anthropic", "llm_model": name} | _budget(config, free=False), models)


def _budget(config: Config, *, free: bool) -> dict[str, Setting]:
    """Return a monthly budget if one is needed and none is set."""
    return {} if free or replace(config, llm_price=None).may_spend else {"budget_month": _BUDGET}


def _model(server: str, models: Sequence[str], wanted: str | None) -> str:
    """Return the wanted model, or else the first one of the server. A name may lack the date at its end."""
    if wanted is None and models:
        return models[0]
    if wanted is None:
        raise InvalidInput(f"{server} lists no models", hint="Start it, or name a model with --model.")
    if models and not any(name == wanted or name.startswith(f"{wanted}-") for name in models):
        listed = ", ".join(map(line, models[:_SHOWN]))
        raise InvalidInput(f"{server} has no model {wanted}", hint=f"Choose one of: {listed}.")
    return wanted


def _named(program: str) -> str:
    """Return the name of a program as `--use` takes it."""
    return program.lower().replace(" ", "-")


def _with_settings(config: Config, settings: dict[str, Setting]) -> Config:
    """Return the configuration with these settings, where None is the default."""
    default = Config()
    values: dict[str, Any] = {}
    for name, setting in settings.items():
        value: Any = getattr(default, name) if setting is None else setting
        values[name] = tuple(value or ()) or None if name == "llm_price" else value
    if "llm_command" in values:
        values["llm_command"] = tuple(values["llm_command"])
    return replace(config, **values)
