"""`palaver observe` and `palaver stats`: extract observations and show costs."""

import signal
import sys
from functools import partial

import click

from ..archiver.store import Store
from ..core.config import Config
from ..core.errors import LeaseHeld
from ..core.home import Home
from ..core.reports import Extraction
from ..core.runtime import Reporter, silent
from ..observe.archive import Archive
from ..observe.extraction.preferences import preference_candidates
from ..observe.llm.ledger import load_stats
from ..observe.llm.model_extractor import ModelExtractor
from ..observe.llm.model_settings import provider_of, why_off
from ..observe.llm.provider import BudgetExhausted
from ..observe.pipeline import observe_pending
from ..templates.json_output import to_json
from ..templates.quote import line
from .memories import preference_fields
from .model import set_up, set_up_unasked
from .output import as_json, print_json, print_page, progress_bars, renderer


@click.command()
@click.option("--estimate", is_flag=True, help="Estimate the cost without sending anything.")
@click.option("--exchanges", is_flag=True, help="Send single exchanges instead of whole sessions. This costs more.")
@click.option("--only-quiet", is_flag=True, hidden=True, help="Do not index the results, because the caller does.")
@click.option("--setup", is_flag=True, help="Choose the language model: find, compare and configure.")
@click.option("--use", metavar="WHAT", help="With --setup: claude, codex, gemini, ollama, anthropic, or an address.")
@click.option("--model", metavar="NAME", help="With --use: the name of the model.")
@click.option("--yes", is_flag=True, help="With --use: ask no question.")
@click.option("--preferences", is_flag=True, help="List preferences that you stated, without storing them.")
@as_json
def observe(
    *,
    estimate: bool,
    exchanges: bool,
    only_quiet: bool,
    setup: bool,
    use: str | None,
    model: str | None,
    yes: bool,
    preferences: bool,
    as_json: bool,
) -> None:
    """Extract observations from archived conversations.

    Extraction by rules is free and works offline. A language model is called only if config.toml has a budget, such as
    `budget_month = 5.00` (dollars), your own server, or your own agent. A budget also needs an API key. One call for
    each session returns its card and up to five findings. You can interrupt the command at any time.
    """
    actions = {"--estimate": estimate, "--setup": setup, "--preferences": preferences}
    asked = [name for name, is_set in actions.items() if is_set]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} cannot be combined.")
    for name, is_set in {"--exchanges": exchanges, "--only-quiet": only_quiet}.items():
        if is_set and asked and (name, *asked) != ("--exchanges", "--estimate"):
            raise click.UsageError(f"{name} cannot be combined with {asked[0]}.")
    if (use or model or yes) and not (setup and use):
        raise click.UsageError("--use, --model and --yes need --setup --use WHAT.")

    # SIGTERM stops the run like Ctrl-C, so that no agent is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    archive = Archive.find()
    home, config = archive.home, archive.config
    with archive.store as store:
        if preferences:
            _show_preferences(store, as_json=as_json)
        elif use is not None:
            set_up_unasked(home, store, config, use, model, yes=yes, as_json=as_json)
        elif setup:
            _set_up(home, store, config, as_json=as_json)
        elif estimate:
            _show_estimate(store, config, exchanges=exchanges, as_json=as_json)
        else:
            _run(archive, exchanges=exchanges, publish=not only_quiet, as_json=as_json)


@click.command()
@as_json
def stats(*, as_json: bool) -> None:
    """Show the costs of language models, the remaining budgets, and the tokens of observations and transcripts."""
    archive = Archive.find()
    config = archive.config
    with archive.store as store:
        totals = load_stats(store, config)
    if as_json:
        print_json(totals)
    else:
        print_page(renderer().render("stats", stats=totals))


def _run(archive: Archive, *, exchanges: bool, publish: bool, as_json: bool) -> None:
    store, config = archive.store, archive.config
    off, result = why_off(config), Extraction()
    with progress_bars() as report:
        observed = observe_pending(store, partial(report, "Observing"))
        if not off:
            result = _extractor(store, config, exchanges=exchanges).run(report)
            observed += observe_pending(store, silent)  # exchanges that an outdated finding left without observations
        # `palaver watch` publishes the results itself.
        if publish and (observed or result.asked):
            _publish(archive, report)
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
    preferences = list(preference_candidates(store))
    if as_json:
        print_json({"candidates": list(map(preference_fields, preferences))})
    elif preferences:
        for preference in preferences:
            click.echo(f"{preference.id}  {line(preference.memory.namespace)}  {line(preference.memory.content)}")
        click.echo("These preferences are not stored yet. Run `palaver memories review` to approve or decline them.")
    else:
        click.echo("No new preferences found. Run `palaver remember TEXT` to store a preference.")


def _publish(archive: Archive, report: Reporter) -> None:
    """Embed and index new observations, unless another process is already doing so."""
    try:
        with archive.pipeline() as pipeline:
            pipeline.run((), report)
    except LeaseHeld:
        return


def _show_estimate(store: Store, config: Config, *, exchanges: bool, as_json: bool) -> None:
    with progress_bars() as report:
        costs = _extractor(store, config, exchanges=exchanges).estimate(report)
    off = why_off(config)
    if as_json:
        print_json({**to_json(costs), "off": off or None})
    else:
        print_page(renderer().render("estimate", estimate=costs, off=off))


def _set_up(home: Home, store: Store, config: Config, *, as_json: bool) -> None:
    with progress_bars() as report:
        costs = _extractor(store, Config(private_projects=config.private_projects)).estimate(report)
    set_up(home, config, costs, as_json=as_json)


def _extractor(store: Store, config: Config, *, exchanges: bool = False) -> ModelExtractor:
    return ModelExtractor(store, config, renderer().prompts, provider_of(config), exchanges=exchanges)
