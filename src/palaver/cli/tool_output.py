"""`palaver search --in output`: search for a literal text in the output of tools."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.core.query import Filters
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.json_output import output_json

from .demo import refuse_demo_only
from .output import print_json, print_page, renderer
from .project_option import archived_as

_SECONDS = 10.0
"""Time limit of a search in seconds."""
_FILTERS = ("after", "before", "projects", "types", "concepts", "files", "sessions", "branches", "agents", "origins")
_USABLE = frozenset({"query", "place", "context", "limit", "budget", "as_json", *_FILTERS})


def print_output(text: str, options: Mapping[str, Any], *, context: int, budget: int, as_json: bool) -> None:
    """Print the matches of a text in tool output.

    Raises:
        InvalidInput: The text or a filter is invalid.
        UsageError: The text is missing, or an option does not apply to tool output.
    """
    command = click.get_current_context()
    given = {name for name in command.params if command.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if not text:
        raise click.UsageError("--in output takes WORDS.")
    if extra := sorted(given - _USABLE):
        raise click.UsageError(f"--in output cannot be combined with {_option(command, extra[0])}.")
    home = Home.find()
    refuse_demo_only(home, "search WORDS")
    named: dict[str, Any] = {name: options[name] for name in _FILTERS}
    named["projects"] = [*map(archived_as, options["projects"])]
    filters = Filters.parse(**named)
    with ArchiveSearch(home, Config.read(home.config).model) as layers:
        found = layers.find_output(text, filters, limit=options["limit"], context=context, seconds=_SECONDS)
    if as_json:
        print_json(output_json(found, budget=budget))
    else:
        print_page(renderer(budget).output(found, filtered=bool(filters)))


def _option(command: click.Context, name: str) -> str:
    """Return the first option string of a parameter."""
    return next(each.opts[0] for each in command.command.params if each.name == name)
