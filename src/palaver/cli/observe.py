"""`palaver observe` and `palaver stats`: extract observations and show costs."""

import signal
import sys
from functools import partial

import click
from msgspec.structs import asdict

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.errors import LeaseHeld
from palaver.core.home import Home
from palaver.core.progress import Reporter
from palaver.core.spending import Extraction
from palaver.observe.extraction.preferences import preference_candidates
from palaver.observe.llm.configured_model import provider_of, why_off
from palaver.observe.llm.model_errors import BudgetExhausted
from palaver.observe.llm.model_extractor import ModelExtractor
from palaver.observe.llm.model_stats import load_dead_letters, load_stats
from palaver.observe.observe_pending import observe_pending
from palaver.observe.pipeline import Pipeline
from palaver.templates.json_output import to_json
from palaver.templates.prompts import ExtractionPrompts
from palaver.templates.quote import line

from .observe_setup import set_up
from .options import as_json
from .output import print_json, print_page, progress_bars, renderer
from .review import preference_fields


@click.command()
@click.option("--estimate", is_flag=True, help="Estimate the cost without sending anything.")
@click.option("--only-outdated", is_flag=True, help="Send only exchanges processed with an older prompt or model.")
@click.option("--only-quiet", is_flag=True, help="Send only sessions that have had no new lines for ten minutes.")
@click.option("--dead-letters", is_flag=True, help="List requests that failed permanently, with reasons.")
@click.option("--revive", is_flag=True, help="Retry requests that failed permanently.")
@click.option("--setup", is_flag=True, help="Choose the language model: find, compare and configure.")
@click.option("--preferences", is_flag=True, help="List preferences that you stated, without storing them.")
@as_json
def observe(
    *,
    estimate: bool,
    only_outdated: bool,
    only_quiet: bool,
    dead_letters: bool,
    revive: bool,
    setup: bool,
    preferences: bool,
    as_json: bool,
) -> None:
    """Extract observations from archived conversations.

    Extraction by rules is free and works offline. A language model is called only if config.toml has a budget, such as
    `budget_month = 5.00` (dollars), your own server, or your own agent. A budget also needs an API key. With
    Anthropic's API, older sessions are sent in batches at half the price. You can interrupt the command at any time.
    """
    given = {
        "--estimate": estimate,
        "--dead-letters": dead_letters,
        "--revive": revive,
        "--setup": setup,
        "--preferences": preferences,
    }
    asked = [name for name, wanted in given.items() if wanted]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} cannot be combined.")
    if only_outdated and (dead_letters or setup or preferences):
        raise click.UsageError(f"--only-outdated cannot be combined with {asked[0]}.")
    if only_quiet and asked and not revive:
        raise click.UsageError(f"--only-quiet cannot be combined with {asked[0]}.")

    # SIGTERM stops the run like Ctrl-C, so that no agent is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home = Home.find()
    config = Config.read(home.config)
    with Store.of(home) as store:
        if preferences:
            _show_preferences(store, as_json=as_json)
        elif setup:
            _set_up(home, store, config, as_json=as_json)
        elif dead_letters:
            _show_dead(store, as_json=as_json)
        elif estimate:
            _show_estimate(store, config, outdated=only_outdated, as_json=as_json)
        else:
            _run(home, store, config, outdated=only_outdated, quiet=only_quiet, revive=revive, as_json=as_json)


@click.command()
@as_json
def stats(*, as_json: bool) -> None:
    """Show the costs of language models, the remaining budgets, and the tokens of observations and transcripts."""
    home = Home.find()
    found = load_stats(home, Config.read(home.config))
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("stats", stats=found))


def _run(home: Home, store: Store, config: Config, *, outdated: bool, quiet: bool, revive: bool, as_json: bool) -> None:
    off, result = why_off(config), Extraction()
    with progress_bars() as report:
        observed = observe_pending(store, partial(report, "Observing"))
        if revive:
            with store.transaction():
                store.jobs.revive()
        if not off:
            result = _extractor(store, config).run(report, outdated=outdated, quiet=quiet)
        # `palaver watch` runs this command for finished sessions, and publishes the results itself.
        if not quiet and (observed or result.learned or result.nothing):
            _publish(home, config, report)
    if as_json:
        print_json({**to_json(result), "observed": observed, "off": off or None})
    else:
        print_page(renderer().render("extraction", extraction=result, observed=observed, off=off))
    if _broke_off(result):
        sys.exit(1)


def _broke_off(result: Extraction) -> bool:
    """Return whether an error stopped the run. An exhausted budget is not an error."""
    return result.stopped is not None and not isinstance(result.stopped, BudgetExhausted)


def _show_preferences(store: Store, *, as_json: bool) -> None:
    found = list(preference_candidates(store))
    if as_json:
        print_json({"candidates": list(map(preference_fields, found))})
    elif found:
        for each in found:
            click.echo(f"{each.id}  {line(each.memory.namespace)}  {line(each.memory.content)}")
        click.echo("These preferences are not stored yet. Run `palaver memories review` to approve or decline them.")
    else:
        click.echo("No new preferences found. Run `palaver remember TEXT` to store a preference.")


def _publish(home: Home, config: Config, report: Reporter) -> None:
    """Embed and index new observations, unless another process is already doing so."""
    try:
        with Pipeline(home, config.model, config.exclude) as pipeline:
            pipeline.run((), report)
    except LeaseHeld:
        return


def _show_estimate(store: Store, config: Config, *, outdated: bool, as_json: bool) -> None:
    with progress_bars() as report:
        found = _extractor(store, config).estimate(report, outdated=outdated)
    off = why_off(config)
    if as_json:
        print_json({**to_json(found), "off": off or None})
    else:
        print_page(renderer().render("estimate", estimate=found, off=off))


def _set_up(home: Home, store: Store, config: Config, *, as_json: bool) -> None:
    with progress_bars() as report:
        found = _extractor(store, Config(private_projects=config.private_projects)).estimate(report)
    set_up(home, config, found, as_json=as_json)


def _show_dead(store: Store, *, as_json: bool) -> None:
    letters = load_dead_letters(store)
    if as_json:
        print_json({"dead_letters": [asdict(letter) for letter in letters]})
    else:
        print_page(renderer().render("dead_letters", letters=letters))


def _extractor(store: Store, config: Config) -> ModelExtractor:
    return ModelExtractor(store, config, ExtractionPrompts(renderer()), provider_of(config))
