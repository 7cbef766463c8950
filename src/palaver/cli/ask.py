"""`palaver ask`: an answer with sources from past conversations."""

from collections.abc import Sequence
from pathlib import Path

import click

from palaver.agents.ask.extractive_answer import extractive_answer
from palaver.core.query import Filters
from palaver.templates.json_output import to_json, with_tokens

from .options import as_json, date_option
from .output import print_json, print_page, renderer
from .project_option import places_of
from .search import open_layers


@click.command()
@click.argument("question", nargs=-1, required=True, metavar="QUESTION...")
@click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="NAME",
    help="Only this project: name, folder, or `.` (current folder).",
)
@click.option("--anywhere", is_flag=True, help="Do not prefer entries of the current folder's project.")
@date_option("--after", "--since", "after", help="First date, inclusive.")
@date_option("--before", "--until", "before", last=True, help="Last date, inclusive.")
@click.option("--no-model", is_flag=True, help="Do not use a language model.")
@as_json
def ask(
    question: Sequence[str],
    *,
    projects: Sequence[str],
    anywhere: bool,
    after: str | None,
    before: str | None,
    no_model: bool,  # noqa: ARG001
    as_json: bool,
) -> None:
    """Answer QUESTION from past conversations, with sources.

    Each finding cites an observation and lines of a transcript. `palaver show ID` and `palaver read SESSION LINES`
    print them.
    """
    places = [place for project in projects for place in places_of(project)]
    filters = Filters.parse(after=after, before=before, projects=places)
    with open_layers() as layers:
        here = "" if anywhere or places else layers.project_at(Path.cwd())
        page = renderer()
        answer = extractive_answer(layers, page, " ".join(question), filters, here)
    if as_json:
        print_json(with_tokens(to_json(answer)))
    else:
        print_page(page.cited_answer(answer))
