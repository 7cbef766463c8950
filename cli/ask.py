"""`palaver ask`: an answer with sources from past conversations."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ..agents.ask.agent_definition import LoopLimits
from ..agents.ask.extractive_answer import extractive_answer
from ..core.command_socket import need_own_process
from ..core.config import Config
from ..core.query import Filters
from ..observe.archive import Archive
from ..templates.json_output import to_json, with_tokens
from .demo import refuse_demo_only
from .output import as_json, date_option, print_json, print_message, print_page, renderer
from .project_option import only_projects, only_tags, places_of

_LIMITS: Final = LoopLimits()


@click.command()
@click.argument("question", nargs=-1, required=True, metavar="QUESTION...")
@only_projects
@only_tags
@click.option("--anywhere", is_flag=True, help="Do not prefer entries of the current folder's project.")
@date_option("--after", "--since", "after", help="First date, inclusive.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option(
    "--also",
    multiple=True,
    metavar="TEXT",
    help="Another wording of QUESTION, searched as part of the same query (up to 4 times).",
)
@click.option("--no-model", is_flag=True, help="Do not use a language model.")
@click.option(
    "--max-turns",
    type=click.IntRange(1, 50),
    default=_LIMITS.turns,
    show_default=True,
    help="Maximum number of model calls.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=_LIMITS.tokens,
    show_default=True,
    help="Maximum tokens that the model reads and writes.",
)
@click.option("--max-cost", type=click.FloatRange(0), metavar="DOLLARS", help="Maximum cost.  [default: 0.50]")
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=_LIMITS.seconds,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time.",
)
@as_json
def ask(
    question: Sequence[str],
    *,
    projects: Sequence[str],
    tags: Sequence[str],
    anywhere: bool,
    after: str | None,
    before: str | None,
    also: Sequence[str],
    no_model: bool,
    max_turns: int,
    max_tokens: int,
    max_cost: float | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Answer QUESTION from past conversations, with sources.

    Each finding cites an observation and lines of a transcript. `palaver show ID` and `palaver read SESSION LINES`
    print them.

    If config.toml sets a budget, your own agent or your own server, the language model of `palaver observe` writes the
    answer. --max-cost also sets a budget. Without a model, or if the model fails, rules compose the answer.
    """
    places = [place for project in projects for place in places_of(project)]
    filters = Filters.parse(after=after, before=before, projects=places, tags=tags)
    with Archive.find() as archive:
        refuse_demo_only(archive.home, "search WORDS")
        here = "" if anywhere or places else archive.search.project_at(Path.cwd())
        page, words = renderer(), " ".join(question)
        if no_model or not _may_use_model(archive.config, max_cost):
            answer = extractive_answer(archive.search, page, words, filters, here, also=also)
        else:
            need_own_process()  # The model takes seconds, and reports its steps.
            from ..agents.ask.question_asker import QuestionAsker  # slow: it loads the providers

            # SIGTERM stops the command like Ctrl-C, so that no agent is left behind.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            limits = LoopLimits(max_turns, max_tokens, timeout, max_cost)
            asker = QuestionAsker(archive, page)
            answer = asker.ask(words, filters, here, limits, also=also, report=print_message)
    if as_json:
        print_json(with_tokens(to_json(answer)))
    else:
        print_page(page.cited_answer(answer))


def _may_use_model(config: Config, max_cost: float | None) -> bool:
    """Return False if the settings rule out a language model. This quick check does not import `why_off`."""
    return config.llm == "command" or max_cost is not None or config.may_spend
