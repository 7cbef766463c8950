"""`palaver export`: write the agents' original files."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.store import Source, Store
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.search.present.transcript_reader import TranscriptPaths

from .options import as_json, not_empty
from .output import print_json, print_message, print_page, progress_bars, raw_output, renderer


@click.command()
@click.argument("what", nargs=-1, metavar="[WHAT] [FOLDER]", callback=not_empty)
@click.option("--all", "everything", is_flag=True, help="Export everything into FOLDER.")
@as_json
def export(what: Sequence[str], *, everything: bool, as_json: bool) -> None:
    """Write the agents' original files, byte for byte, even if the agents deleted them.

    WHAT is a path that `palaver read` printed, the path that the agent used, or a session ID (or its first
    characters) for all files of a session. Without FOLDER, a single file is written to standard output. On a terminal,
    control characters are removed. FOLDER gets one subfolder per agent with the original paths. The command verifies
    every file and never replaces an existing file.

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
    with Store.open(home.database) as store:
        raw = RawArchive(home.archive)
        exporter, paths = Exporter(store, raw), TranscriptPaths(store, raw)
        if to_output:
            _print(paths.sources(what[0]), exporter)
            return
        sources = store.sources.all() if everything else paths.sources(what[0])
        with progress_bars() as reporter:
            exported = exporter.export(sources, Path(what[-1]), partial(reporter, "Exporting"))
    if as_json:
        print_json(exported)
    else:
        print_page(renderer().render("exported", exported=exported))
    if exported.problems or exported.warnings:
        sys.exit(1)


def _print(sources: Sequence[Source], exporter: Exporter) -> None:
    if len(sources) > 1:
        names = ", ".join(source.archived for source in sources[:3])
        raise InvalidInput(
            f"The session has {len(sources):,} files: {names}", hint="Give a FOLDER, or the path of one file."
        )
    exporter.write(sources[0], raw_output())
    if warning := exporter.warning(sources[0]):
        print_message(f"{sources[0].archived}: {warning}. Run `palaver fsck --repair`.")
