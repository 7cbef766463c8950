"""Export commands: `palaver export` writes archived files or transcripts, `redact` lists redacted secrets.

`export` writes the agents' original files, or the text that `palaver read` shows.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from ..archiver.copies.exporter import Exporter
from ..archiver.copies.raw_copy import RawArchive
from ..archiver.reading.parsing import kinds_in_sources, secrets_in
from ..archiver.store import Source, Store
from ..core.errors import InvalidInput, PalaverError, SourceUnreadable
from ..core.home import Home
from ..core.reports import Exported
from ..observe.archive import Archive
from ..search.archive_search import ArchiveSearch
from ..search.present.transcript_reader import TranscriptPaths
from ..templates.render import Renderer
from .output import (
    as_json,
    not_empty,
    print_json,
    print_message,
    print_page,
    progress_bars,
    raw_output,
    renderer,
    without_marks,
)
from .search import open_layers, secrets_sentence

_UNLIMITED = 1 << 40
"""Token budget with which no text is shortened."""
_REMEDY = "add --redacted"


@click.command()
@click.argument("what", nargs=-1, metavar="[WHAT] [FOLDER]", callback=not_empty)
@click.option("--all", "everything", is_flag=True, help="Export everything into FOLDER.")
@click.option(
    "--redacted", is_flag=True, help="Write the text that `palaver read` shows, without secrets, as Markdown."
)
@as_json
def export(what: Sequence[str], *, everything: bool, redacted: bool, as_json: bool) -> None:
    """Write the agents' original files, byte for byte, even if the agents deleted them.

    WHAT is a path that `palaver read` printed, the path that the agent used, or a session ID (or its first
    characters) for all files of a session. Without FOLDER, a single file is written to standard output. On a terminal,
    control characters are removed. FOLDER gets one subfolder per agent with the original paths. The command verifies
    every file and never replaces an existing file.

    Original files contain the secrets and private text that `palaver read` hides. The command counts the secrets.
    To share a conversation, add --redacted.

    Exit status: 0 success, 1 some files were not exported or are damaged, 2 usage error.
    """
    if len(what) not in ({1} if everything else {1, 2}):
        raise click.UsageError(
            "Give a FOLDER with --all." if everything else "Give WHAT to export, and optionally a FOLDER."
        )
    to_output = not everything and what[1:] in {(), ("-",)}
    if to_output and as_json:
        raise click.UsageError("--json requires a FOLDER.")
    home = Home.find()
    with Archive(home).store as store:
        raw = RawArchive(home.archive)
        exporter = Exporter(store, raw)
        sources = store.sources.all() if everything else TranscriptPaths(store, raw).sources(what[0])
        if to_output:
            _print(_only(sources), exporter, store, home, redacted=redacted)
            return
        with progress_bars() as reporter:
            progress, folder = partial(reporter, "Exporting"), Path(what[-1])
            if redacted:
                with open_layers(home) as layers:
                    exported = exporter.export_pages(sources, folder, partial(_page, home, layers), progress)
            else:
                exported = exporter.export(sources, folder, progress)
                exported.secrets = kinds_in_sources(store, _lines(sources))
    _report(exported, as_json=as_json)


def _report(exported: Exported, *, as_json: bool) -> None:
    if as_json:
        print_json(exported)
    else:
        contents = "" if exported.secrets is None else secrets_sentence(exported.secrets, _REMEDY)
        print_page(renderer().render("exported", exported=exported, contents=contents))
    if exported.problems or exported.warnings:
        sys.exit(1)


def _only(sources: Sequence[Source]) -> Source:
    """Return the only source. Raises `InvalidInput` if there are several."""
    if len(sources) > 1:
        names = ", ".join(source.archived for source in sources[:3])
        raise InvalidInput(
            f"The session has {len(sources):,} files: {names}", hint="Give a FOLDER, or the path of one file."
        )
    return sources[0]


def _print(source: Source, exporter: Exporter, store: Store, home: Home, *, redacted: bool) -> None:
    """Write a file to standard output, and messages about it to standard error."""
    if redacted:
        with open_layers(home) as layers:
            print_page(_page(home, layers, source))
        return
    exporter.write(source, raw_output())
    if warning := exporter.warning(source):
        print_message(f"{source.archived}: {warning}. Run `palaver fsck --repair`.")
    if secrets := kinds_in_sources(store, _lines([source])):
        print_message(secrets_sentence(secrets, _REMEDY))


def _page(home: Home, layers: ArchiveSearch, source: Source) -> str:
    """Return the whole conversation of a source as `palaver read` shows it to a user."""
    pages = Renderer(home.templates, at_shell=True, budget=_UNLIMITED)
    try:
        return without_marks(pages.read(layers.read(source.archived, budget=_UNLIMITED)))
    except SourceUnreadable:
        raise
    except PalaverError as problem:
        raise SourceUnreadable(Path(source.archived), str(problem), hint=problem.hint) from problem


def _lines(sources: Sequence[Source]) -> dict[int, range]:
    return {source.id: range(1, source.lines + 1) for source in sources if source.id is not None}


@click.command()
@click.option("--report", is_flag=True, help="List redacted secrets (the default).")
@as_json
def redact(*, report: bool, as_json: bool) -> None:  # noqa: ARG001 - spelled out in scripts
    """List redacted secrets by kind and location, without printing the secrets.

    Every text is redacted before it is stored. Equal secrets have equal placeholders. After an update of the rules,
    `palaver archive` parses all transcripts again.
    """
    with Archive.find().store as store:
        found = secrets_in(store)
    if as_json:
        print_json(found)
    else:
        print_page(renderer().render("secrets", found=found))
