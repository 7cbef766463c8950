"""`palaver search --in output`: search for a literal text in the output of tools."""

from collections.abc import Container, Mapping
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
    if not text:
        raise click.UsageError("--in output requires WORDS.")
    refuse_others(_USABLE, "--in output")
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


def refuse_others(usable: Container[str], option: str) -> None:
    """Raise `UsageError` for an option outside `usable`, because it cannot be combined with `option`."""
    command = click.get_current_context()
    given = {name for name in command.params if command.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    for each in command.command.params:
        if each.name in given and each.name not in usable:
            name = each.opts[0] if isinstance(each, click.Option) else "WORDS"
            raise click.UsageError(f"{option} cannot be combined with {name}.")
