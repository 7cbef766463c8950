"""`palaver search --symbol` and `--in code`: search in indexed code by name or by exact text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from palaver.archiver.store import Store
from palaver.core.document import DocumentFilter
from palaver.core.home import Home
from palaver.core.memory import project_namespace
from palaver.search.code_search import CodeSearch
from palaver.search.query.secret_placeholders import redacted
from palaver.templates.json_output import code_lines_json, symbols_json

from .output import print_json, print_page, renderer
from .project_option import is_folder
from .tool_output import refuse_others

_FILTERS = frozenset({"projects", "files", "languages", "units"})
_USABLE = _FILTERS | {"limit", "budget", "as_json"}


def print_symbols(name: str, options: Mapping[str, Any], *, budget: int, as_json: bool) -> None:
    """Print the code units with a name.

    Raises:
        InvalidInput: The name or a filter is invalid.
        UsageError: An option does not apply to symbols.
    """
    refuse_others(_USABLE | {"symbol"}, "--symbol")
    wanted = _code_filter(options)
    home = Home.find()
    with Store.of(home) as store:
        code = CodeSearch.of_home(store, home)
        found = code.symbols(redacted(name, home), wanted, limit=options["limit"])
    if as_json:
        print_json(symbols_json(found, budget=budget))
    else:
        print_page(renderer(budget).symbols(found, filtered=wanted != DocumentFilter()))


def print_code_lines(text: str, options: Mapping[str, Any], *, context: int, budget: int, as_json: bool) -> None:
    """Print the lines of code that contain a text.

    Raises:
        InvalidInput: The text or a filter is invalid.
        UsageError: The text is missing, or an option does not apply to lines of code.
    """
    if not text:
        raise click.UsageError("--in code requires WORDS.")
    refuse_others(_USABLE | {"query", "place", "context"}, "--in code")
    wanted = _code_filter(options)
    home = Home.find()
    with Store.of(home) as store:
        code = CodeSearch.of_home(store, home)
        found = code.lines(redacted(text, home), wanted, limit=options["limit"], context=context)
    if as_json:
        print_json(code_lines_json(found, budget=budget))
    else:
        print_page(renderer(budget).code_lines(found, filtered=wanted != DocumentFilter()))


def _code_filter(options: Mapping[str, Any]) -> DocumentFilter:
    """Return the filter of the command line. `--project` names a folder with indexed files, or a namespace."""
    projects: Sequence[str] = options["projects"]
    folders = [Path(each).expanduser().resolve() for each in projects if is_folder(each)]
    names = [each for each in projects if not is_folder(each)]
    if len(options["files"]) > 1 or len(folders) + bool(names) > 1:
        raise click.UsageError("Code is searched with one --file, and with one folder or names as --project.")
    return DocumentFilter(
        namespaces=tuple(dict.fromkeys(space for name in names for space in (name, project_namespace(name)))),
        under=folders[0] if folders else None,
        pattern="".join(options["files"]),
        languages=tuple(options["languages"]),
        units=tuple(options["units"]),
    )
