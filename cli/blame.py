"""`palaver blame`: the session and the prompt that wrote the lines of a file."""

from pathlib import Path

import click

from ..core.errors import InvalidInput
from ..core.home import Home
from ..observe.archive import Archive
from .output import as_json, print_json, print_page, renderer


@click.command()
@click.argument("target", metavar="FILE[:LINE]")
@click.option(
    "--commit", metavar="COMMIT", default="", help="Read the file of this commit instead of the working tree."
)
@as_json
def blame(*, target: str, commit: str, as_json: bool) -> None:
    """Show which session and prompt wrote each line of a file, over all agents.

    git blame shows when a line was written, and the archived edits show who wrote it. A line that was moved, indented
    or reformatted keeps its author. Lines that no archived session wrote have no author.

    Certain: an agent wrote exactly this line into this file before the commit. Likely: the line differs in whitespace
    or punctuation, was written to a copy of the file, or is part of an agent's commit.
    """
    path, line = _parse(target)
    with Archive(Home.find()) as archive:
        authors = archive.traces.blame(path, line, commit)
    if as_json:
        print_json(authors)
    else:
        print_page(renderer().render("blame", blame=authors, one=line is not None))


def _parse(target: str) -> tuple[Path, int | None]:
    """Return the file and the line of a target. A file whose name ends with a number after a colon is a file."""
    name, colon, number = target.rpartition(":")
    if Path(target).exists() or not (colon and number.replace("-", "").isdecimal()):
        return Path(target), None
    if "-" in number:
        raise InvalidInput(f"{target} names several lines", hint="Give one line, FILE:LINE, or the whole FILE.")
    if not name:
        raise InvalidInput(f"No file in {target}", hint="Write FILE:LINE, for example app.py:12.")
    return Path(name), int(number)
