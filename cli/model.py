"""Model commands: `palaver model` changes the embedding model, `observe --setup` chooses the language model.

`--setup` offers the language models that this machine can use. `--setup --use WHAT` configures one by name, after one
trial call.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
from msgspec import Struct
from msgspec.structs import replace

from ..archiver.store import Store
from ..core.config import Config, Setting, write_settings
from ..core.errors import InvalidInput
from ..core.home import Home
from ..core.prices import Price, PriceList
from ..core.reports import Estimate, dollars, many
from ..core.runtime import replacing
from ..observe.archive import Archive
from ..observe.llm.agent_command import NO_TOOLS, installed_agents, known_agents
from ..observe.llm.ledger import Budget
from ..observe.llm.model_extractor import try_model
from ..observe.llm.model_servers import ANTHROPIC, KEYS, OPENAI, OPENROUTER, OWN_KEY, PORTS, local_servers, models_at
from ..search.model.embedder import DEFAULT_MODEL, load
from ..templates.json_output import to_json
from ..templates.quote import line
from .output import as_json, print_json, renderer

_URLS: Final = {"OPENAI_API_KEY": OPENAI, "OPENROUTER_API_KEY": OPENROUTER}
SETTINGS = ("llm", "llm_model", "llm_url", "llm_command", "llm_price")
_ADDRESS: Final = ("http://", "https://")
_SHOWN: Final = 30
"""Maximum number of models that an error lists."""
_BUDGET: Final = 5.0
"""Dollars per month, if a model costs money and no budget is set."""


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def model(ctx: click.Context, *, as_json: bool) -> None:
    """Show the embedding model, or change it with `use`."""
    if ctx.invoked_subcommand is not None:
        return
    chosen = Archive.find().config.model
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None})
    else:
        click.echo(chosen or f"{DEFAULT_MODEL} (packaged)")


@model.command("use")
@click.argument("name")
@as_json
def use_model(name: str, *, as_json: bool) -> None:
    """Change the embedding model.

    NAME is a sentence-transformers model (downloaded if necessary), the full path of a folder, or `packaged`. Run
    `palaver archive` afterwards to embed all entries. Until then, search uses the old vectors.
    """
    home = Home.find()
    chosen = None if name in {"packaged", DEFAULT_MODEL} else name
    dimension = load(chosen or DEFAULT_MODEL, download=True).dimension
    home.make()
    replace(Archive(home).config, model=chosen).write(home.config)
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None, "dimension": dimension})
    else:
        click.echo(
            f"Using {chosen or DEFAULT_MODEL}, {dimension} dimensions. Run `palaver archive` to embed all entries."
        )


class ModelChoice(Struct, frozen=True):
    """Language model that this machine can use.

    `use` describes its cost. `priced` is False if the price depends on the model. `free` is True if no budget is
    needed. `needs_policy` is True if the agent needs the file `no-tools.toml`.
    """

    name: str
    use: str
    settings: dict[str, Setting]
    models: tuple[str, ...] = ()
    priced: bool = True
    free: bool = True
    needs_policy: bool = False


def set_up(home: Home, config: Config, estimate: Estimate, *, as_json: bool) -> None:
    """Show the cost of each available model for the pending sessions, ask for a choice, and write the settings.

    `estimate` contains the costs of Anthropic's API. With `as_json`, only print the choices.
    """
    choices = _choices(home, config, estimate)
    if as_json:
        print_json({"sessions": estimate.calls, "choices": [_fields(choice) for choice in choices]})
        return
    if not choices:
        click.echo(
            "No coding agent on PATH, no local server and no API key found."
            " Without them, Palaver extracts observations by rules."
            " To use a model, install an agent or a local server such as Ollama, or set ANTHROPIC_API_KEY."
        )
        return
    click.echo(f"{many(estimate.calls, 'session')} can be sent to a language model, in one call each: prompts and the")
    click.echo(
        "last answer to each, with secrets redacted. `palaver watch` sends old and new sessions after ten minutes"
    )
    click.echo("without activity, within the same limits.")
    click.echo("These models can be used on this machine:\n")
    for number, choice in enumerate(choices, start=1):
        click.echo(f"{number}. {line(choice.name)}: {line(choice.use)}")
    click.echo("0. None: observations are extracted by rules only\n")
    number = click.prompt("Choice", type=click.IntRange(0, len(choices)), default=0)
    if number == 0:
        click.echo("Nothing was changed.")
        return
    _write(home, config, choices[number - 1])


def _choices(home: Home, config: Config, estimate: Estimate) -> list[ModelChoice]:
    """Return a choice for each agent, local server and API key of this machine."""
    policy = home.root / "no-tools.toml"
    days = -(-estimate.calls // max(config.llm_calls_day, 1))
    calls = f"{estimate.calls:,} calls of your account with about {estimate.tokens_in:,} input tokens and"
    calls += f" {estimate.tokens_out:,} output tokens, in {days:,} days (at most {config.llm_calls_day} calls a day)"
    agents = [
        ModelChoice(
            agent.name, calls, {"llm": "command", "llm_command": agent.command}, needs_policy=agent.needs_policy
        )
        for agent in installed_agents(policy)
    ]
    servers = [
        ModelChoice(
            f"{server.name} at {server.url}",
            f"free, {estimate.calls:,} requests",
            {"llm": "openai", "llm_url": server.url, "llm_price": (0.0, 0.0)},
            models=server.models,
        )
        for server in local_servers()
    ]
    return [*agents, *servers, *_keys(estimate)]


def _keys(estimate: Estimate) -> Sequence[ModelChoice]:
    """Return a choice for each server whose API key is set."""
    cost = f"{dollars(estimate.cost)} ({estimate.priced})"
    tokens = f"the price of about {estimate.tokens_in:,} input and {estimate.tokens_out:,} output tokens"
    choices = list[ModelChoice]()
    for host, key in KEYS.items():
        if not os.environ.get(key):
            continue
        if key in _URLS:
            settings: dict[str, Setting] = {"llm": "openai", "llm_url": _URLS[key]}
            choices.append(ModelChoice(f"{host} with {key}", tokens, settings, priced=False, free=False))
        else:
            settings = {"llm": "anthropic", "llm_model": estimate.model}
            choices.append(ModelChoice(f"{estimate.model} at {host} with {key}", cost, settings, free=False))
    return choices


def _write(home: Home, config: Config, choice: ModelChoice) -> None:
    """Ask for missing values, and write the settings. Lines of other settings are kept."""
    settings: dict[str, Setting] = dict.fromkeys(SETTINGS) | choice.settings
    if choice.settings["llm"] == "openai":
        question = f"Model ({', '.join(map(line, choice.models))})" if choice.models else "Model"
        settings["llm_model"] = click.prompt(question, default=choice.models[0] if choice.models else None)
    if not choice.priced and _listed_price(config, settings) is None:
        amount = click.FloatRange(0, 1e6)
        tokens_in = click.prompt("Dollars per million input tokens", type=amount)
        settings["llm_price"] = (tokens_in, click.prompt("Dollars per million output tokens", type=amount))
    if not choice.free and not Budget.of(config).limits:
        settings["budget_month"] = click.prompt("Maximum dollars per month", type=click.FloatRange(0, 1e6), default=5.0)
    save(home, settings, policy=choice.needs_policy)
    click.echo(f"Saved {home.config}. Run `palaver observe` to start now. `palaver watch` sends later sessions.")


def save(home: Home, settings: Mapping[str, Setting], *, policy: bool) -> None:
    """Write the settings, and with `policy` the file that forbids an agent all tools. Other lines are kept."""
    if policy:
        with replacing(home.root / "no-tools.toml") as file:
            file.write(NO_TOOLS.encode())
    write_settings(home.config, settings)
    Config.read(home.config)


def _fields(choice: ModelChoice) -> dict[str, Any]:
    settings = {name: value for name, value in choice.settings.items() if value is not None}
    return {"name": choice.name, "use": choice.use, "settings": settings, "models": choice.models}


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
    trial = try_model(store, tried, renderer().prompts("session"))
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
        usable = [*(agent.command[0] for agent in known_agents(policy)), *names, "anthropic"]
        raise InvalidInput(
            f"Unknown model: {use}", hint=f"Use one of: {', '.join(usable)}, or the address of a server."
        )
    running = next((server for server in local_servers() if server.name == names[use]), None)
    if running is None:
        hint = f"Start it and load a model, or use its address: --use http://127.0.0.1:{PORTS[names[use]]}/v1"
        raise InvalidInput(f"{names[use]} does not answer on this machine, or has no model", hint=hint)
    return _server(config, running.url, model)


def _agent(policy: Path, use: str, model: str | None) -> _Use:
    agent = next((installed for installed in installed_agents(policy) if Path(installed.command[0]).name == use), None)
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
    settings: dict[str, Setting] = {"llm": "openai", "llm_url": url, "llm_price": price, "llm_model": model}
    if price is None and _listed_price(config, settings) is None:
        hint = "Name a listed model with --model, or write llm_price = [IN, OUT] in config.toml first."
        raise InvalidInput(f"The price of {model or 'the model'} at {url} is unknown", hint=hint)
    secret = os.environ.get(key or OWN_KEY, "")
    models = models_at(url, {"authorization": f"Bearer {secret}"} if secret else None)
    settings["llm_model"] = _model(url, models, model)
    return _Use(settings | _budget(config, free=price is not None and not any(price)), models)


def _listed_price(config: Config, settings: Mapping[str, Setting]) -> Price | None:
    """Return the price of the chosen model at its server, if a list contains it."""
    prices = PriceList(replace(config, llm_price=None))
    return prices.price(str(settings["llm_model"] or ""), str(settings["llm_url"]))


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


def _model(server: str, models: Sequence[str], requested: str | None) -> str:
    """Return the requested model, or else the first one of the server. A name may lack the date at its end."""
    if requested is None and models:
        return models[0]
    if requested is None:
        raise InvalidInput(f"{server} lists no models", hint="Start it, or name a model with --model.")
    if models and not any(name == requested or name.startswith(f"{requested}-") for name in models):
        listed = ", ".join(map(line, models[:_SHOWN]))
        raise InvalidInput(f"{server} has no model {requested}", hint=f"Choose one of: {listed}.")
    return requested


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
