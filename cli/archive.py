"""`palaver up` and `palaver archive`: ingest transcripts.

Slow modules are imported while the first process of the parser pool starts.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ..archiver.ingest.parser_pool import ParserPool
from ..core.errors import InvalidInput, PalaverError
from ..core.home import DEMO, DEMO_FOLDER, Home
from ..core.reports import Report, Unsearched
from ..observe.archive import Archive
from ..templates.json_output import to_json
from .demo import is_demo, is_demo_selected, refuse_demo
from .output import as_json, not_empty, print_json, print_message, print_page, progress_bars, renderer
from .program import command_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..archiver.ingest.transcripts import Transcript
    from ..core.reports import ArchivedAgent, FormatDrift

_WAIT: Final = 30.0
"""Seconds to wait for another process that is ingesting, such as the background archiver."""

_LOADED: Final = "No agent history found. Loaded a small sample archive instead."
_DEMO_QUERY: Final = '"sqlite or json files"'
_WORDS: Final = 6
"""Maximum number of words in the suggested query."""
_WORD: Final = re.compile(r"\w+")
"""Pattern for words without shell metacharacters."""
_CLAUSE_END: Final = re.compile(r"[.,;:!?…](?=\s|$)|[][(){}<>\"“”\n]| [-–—] ")


@click.command()
@as_json
def up(*, as_json: bool) -> None:
    """Archive all your agents' history, index it, and suggest next steps.

    Run it again to ingest new transcripts. The next steps are printed on the first run only. Without any agent history,
    it loads a small sample archive into a separate home.
    """
    home = Home.find()
    with _parser_pool(home) as pool:
        from ..archiver.ingest.transcripts import in_paths, of_this_user

        skipped = Unsearched()
        selected = is_demo_selected()
        transcripts = [] if selected else of_this_user(skipped)
        if transcripts:
            refuse_demo(home)
        demo = selected or (not transcripts and home.is_new)
        own = command_of(Home(home.root.parent) if selected else home) if demo else ""
        if demo:
            home, transcripts = home if selected else Home(home.root / DEMO_FOLDER), in_paths([DEMO])
            if not (as_json or selected):
                click.echo(_LOADED if home.is_new else f"No agent history found; the sample archive is in {home.root}.")
                _print_unread()
        first = _is_empty(home)
        complete = _archive(home, transcripts, skipped, pool, as_json=as_json)
    if first and not as_json:
        click.echo()
        about = _DEMO_QUERY if demo else _suggested_query(home)
        model = "" if demo else _usable_model(home)
        print_page(renderer().render("next_steps", command=command_of(home), about=about, own=own, model=model))
    if not complete:
        sys.exit(1)


def _is_empty(home: Home) -> bool:
    """Return whether a home contains no transcripts yet."""
    if home.is_new:
        return True
    with Archive(home).store as store:
        return not store.sources.totals()[0]


def _suggested_query(home: Home) -> str:
    """Return the first words of the newest title that begins with a clause of several words, as a quoted search.

    Words of two clauses would be a query that nobody means. The result is empty if there is no such title.
    """
    with Archive(home).store as store:
        sessions = sorted(
            store.sessions.all().values(), key=lambda session: session.ended or session.started or 0, reverse=True
        )
    for session in sessions:
        words: list[str] = _WORD.findall(_CLAUSE_END.split(session.title, maxsplit=1)[0])
        if len(words) > 1:
            return f'"{" ".join(words[:_WORDS])}"'
    return ""


def _usable_model(home: Home) -> str:
    """Return a coding agent or a local server that could write session cards, if no model is configured."""
    from .model import suggestion

    return suggestion(home, Archive(home).config)


@click.command()
@click.argument("paths", nargs=-1, callback=not_empty)
@click.option("--skipped", "listing", is_flag=True, help="List the files that were not archived, with the reason.")
@as_json
def archive(paths: Sequence[str], *, listing: bool, as_json: bool) -> None:
    """Archive files or folders of transcripts. Without PATHS, archive the folders of all known agents.

    Only changed files are read. You can interrupt the command at any time.
    """
    home = Home.find()
    with _parser_pool(home) as pool:
        from ..archiver.ingest.transcripts import in_paths, of_this_user

        for path in paths:
            if not Path(path).exists():
                raise InvalidInput(
                    f"{path}: No such file or directory", hint="Name a transcript or a folder of transcripts."
                )
        skipped = Unsearched()
        transcripts = in_paths([Path(path) for path in paths], skipped) if paths else of_this_user(skipped)
        if transcripts and not paths:
            refuse_demo(home)
        if not transcripts and home.is_new:
            if not as_json:
                _print_unread()
            hint = "Give a folder of transcripts, or run `palaver up` to try demo data."
            raise PalaverError("No agent history found", hint=hint)
        complete = _archive(home, transcripts, skipped, pool, as_json=as_json, listing=listing)
    if not complete:
        sys.exit(1)


def _found(home: Home) -> tuple[list[ArchivedAgent], list[FormatDrift], int]:
    """Return the agents in the archive, the signs that formats changed, and the number of files that are not read."""
    from ..archiver.copies.raw_copy import RawArchive
    from ..observe.upkeep.archive_status import agents_of
    from ..observe.upkeep.format_drift import format_drift

    with Archive(home).store as store:
        return agents_of(store), format_drift(store, RawArchive(home.archive)), len(store.sources.problems())


def _print_unread() -> None:
    """Print the agents' files that were found but cannot be read."""
    from ..archiver.ingest.transcripts import encrypted_counts
    from ..observe.upkeep.format_drift import generations

    for sign in generations():
        print_message(f"Not read: {sign.agent}: {sign.problem}. Update Palaver, or report this.")
    _print_encrypted(encrypted_counts())


def _print_encrypted(encrypted: dict[str, int]) -> None:
    """Print the number of files that only their agent can decrypt, by agent."""
    if encrypted:
        print_page(renderer().render("encrypted", encrypted=encrypted))


def _announce_wait(home: Home) -> None:
    """Print a message if another process is ingesting, because this process then waits."""
    from ..archiver.store import ARCHIVER

    with Archive(home).store as store:
        holder = store.leases.holder(ARCHIVER)
    if holder is not None:
        print_message(f"Waiting up to {_WAIT:.0f} s for another process that is ingesting ({holder.who}).")


def _parser_pool(home: Home) -> ParserPool:
    """Return a pool of parser processes. In a new home, start the first process, so that modules load in parallel."""
    pool = ParserPool()
    if home.is_new:
        pool.start()
    return pool


def _archive(
    home: Home,
    transcripts: Sequence[Transcript],
    skipped: Unsearched,
    pool: ParserPool,
    *,
    as_json: bool,
    listing: bool | None = None,
) -> bool:
    """Run all stages and print a report. Return whether all files were readable and all stages succeeded.

    `listing` is True to list the omitted files, or None if the command has no such option.
    """
    from ..archiver.ingest.transcripts import encrypted_counts

    with Archive(home).pipeline(pool) as pipeline, progress_bars() as reporter:

        def announce(report: Report) -> None:
            if report.ingested.changed and not as_json:
                with reporter.hidden():
                    print_page(renderer().render("searchable", report=report))

        _announce_wait(home)
        report = pipeline.run(transcripts, reporter, _WAIT, announce)
    report.ingested.skipped = skipped
    agents, drift, problems = _found(home)
    encrypted = {} if is_demo(home) else encrypted_counts()
    if as_json:
        found = {"agents": agents, "drift": drift, "encrypted": encrypted}
        print_json({**to_json(report), "home": str(home.root), **found})
    else:
        print_page(renderer().render("report", report=report, listing=listing))
        if listing is None and not is_demo(home) and (report.ingested.changed or drift or problems):
            print_page(renderer().render("found", agents=agents, drift=drift, problems=problems))
            _print_encrypted(encrypted)
        if listing:
            print_page(renderer().render("omitted", omitted=report.ingested.omitted))
    return not (report.ingested.problems or report.compression.problems) and report.model is None
