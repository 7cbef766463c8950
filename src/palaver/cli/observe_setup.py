"""`palaver observe --setup`: choose the language model among those that this machine can use."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

from palaver.core.amount import dollars, many
from palaver.core.config import Config, Setting, write_settings
from palaver.core.durability import replacing
from palaver.core.home import Home
from palaver.core.spending import Estimate
from palaver.observe.llm.api_keys import KEYS
from palaver.observe.llm.known_agents import NO_TOOLS, installed_agents
from palaver.observe.llm.ledger import Budget
from palaver.observe.llm.local_servers import local_servers
from palaver.observe.llm.openai_api import OPENAI
from palaver.templates.quote import line

from .output import print_json

_URLS = {"OPENAI_API_KEY": OPENAI, "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1"}
SETTINGS = ("llm", "llm_model", "llm_url", "llm_command", "llm_price")


class ModelChoice(Struct, frozen=True):
    """Language model that this machine can use.

    `use` describes its cost. `priced` is False if the user must enter the price. `free` is True if no budget is needed.
    `needs_policy` is True if the agent needs the file `no-tools.toml`.
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
    found = list[ModelChoice]()
    for host, key in KEYS.items():
        if not os.environ.get(key):
            continue
        if key in _URLS:
            settings: dict[str, Setting] = {"llm": "openai", "llm_url": _URLS[key]}
            found.append(ModelChoice(f"{host} with {key}", tokens, settings, priced=False, free=False))
        else:
            settings = {"llm": "anthropic", "llm_model": estimate.model}
            found.append(ModelChoice(f"{estimate.model} at {host} with {key}", cost, settings, free=False))
    return found


def _write(home: Home, config: Config, choice: ModelChoice) -> None:
    """Ask for missing values, and write the settings. Lines of other settings are kept."""
    settings: dict[str, Setting] = dict.fromkeys(SETTINGS) | choice.settings
    if choice.settings["llm"] == "openai":
        shown = f"Model ({', '.join(map(line, choice.models))})" if choice.models else "Model"
        settings["llm_model"] = click.prompt(shown, default=choice.models[0] if choice.models else None)
    if not choice.priced:
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
