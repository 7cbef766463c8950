"""`palaver sync`: one archive on several machines, through a shared folder."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from ..core.errors import InvalidInput, LeaseHeld, SyncRefused
from ..core.runtime import silent
from ..core.sync_report import SyncReport
from ..observe.archive import Archive
from ..observe.sync.synchronizer import Synchronizer
from .demo import refuse_demo
from .output import as_json, print_json, print_message, print_page, progress_bars, renderer
from .program import StopSignal

_VARIABLE: Final = "PALAVER_SYNC_PASSPHRASE"
_SHORTEST: Final = 8
"""Minimum characters of a passphrase."""
_WAIT_MS: Final = 60_000
"""Milliseconds after which changes of this machine are sent, if no file of another machine arrives before."""


@click.command()
@click.argument("place", default="", metavar="[DIR]")
@click.option("--watch", is_flag=True, help="Synchronise when files arrive, and every minute, until interrupted.")
@click.option("--status", is_flag=True, help="Show what has not arrived, and what other machines have not read.")
@click.option("--leave", is_flag=True, help="Delete this machine's files in the folder, and disconnect from it.")
@as_json
def sync(*, place: str, watch: bool, status: bool, leave: bool, as_json: bool) -> None:
    """Share your archive with your other machines through a folder.

    DIR is a folder that Syncthing, Dropbox, git or a network drive shares, or a bucket such as s3://bucket/prefix with
    the extra `s3`. Run the command on each machine. Without DIR, the last folder is used.

    Transcripts, memories and deletions are encrypted with a passphrase that all machines share. It is asked for once,
    or read from PALAVER_SYNC_PASSPHRASE, and has at least eight characters. Each machine writes only to its own
    subfolder, and stores, parses and indexes what the others sent. What you forget on one machine is forgotten on all
    of them, as soon as each has run.
    """
    if sum((watch, status, leave)) > 1 or (place and (status or leave)):
        raise click.UsageError("Use one of --watch, --status and --leave. --status and --leave take no DIR.")
    archive = Archive.find()
    refuse_demo(archive.home)
    with archive:
        synchronizer = archive.synchronizer(_checked(os.environ.get(_VARIABLE, "")))
        if leave:
            folder = synchronizer.leave()
            if as_json:
                print_json({"left": folder})
            else:
                click.echo(f"Left {folder}. What was received stays here, and other machines keep what they received.")
        elif status and not synchronizer.place:
            if as_json:
                print_json({"folder": ""})
            else:
                click.echo("This archive is not synchronised. To start: palaver sync DIR, with a shared folder.")
        elif status:
            _show(synchronizer.status(archive.store), as_json=as_json, status=True)
        else:
            target = _target(synchronizer, place)
            if synchronizer.needs_passphrase:
                synchronizer = archive.synchronizer(_ask(is_first=not synchronizer.has_devices(target)))
            if watch:
                _watch(synchronizer, target, as_json=as_json)
            else:
                with progress_bars() as report:
                    result = synchronizer.run(target, report)
                _show(result, as_json=as_json)


def _target(synchronizer: Synchronizer, place: str) -> str:
    """Return the shared folder as an absolute path, or the URL of a bucket."""
    target = place or synchronizer.place
    if not target:
        raise click.UsageError("Give DIR, a folder that your machines share.")
    if "://" in target:
        return target
    folder = Path(target).expanduser().absolute()
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: No such folder", hint="Create it, or start your sync tool, then try again.")
    return str(folder)


def _ask(*, is_first: bool) -> str:
    """Ask for the passphrase: twice if this is the first machine."""
    if not sys.stdin.isatty():
        raise InvalidInput("The folder needs a passphrase", hint=f"Set {_VARIABLE}, or run the command at a terminal.")
    return _checked(click.prompt("Passphrase", hide_input=True, confirmation_prompt=is_first, err=True))


def _checked(passphrase: str) -> str:
    """Return a passphrase that is empty or long enough."""
    if 0 < len(passphrase) < _SHORTEST:
        problem = f"The passphrase has fewer than {_SHORTEST} characters"
        raise InvalidInput(problem, hint="Use a longer one: the folder may be a cloud's.")
    return passphrase


def _show(report: SyncReport, *, as_json: bool, status: bool = False) -> None:
    if as_json:
        print_json(report)
    else:
        print_page(renderer().render("synced", report=report, status=status))


def _watch(synchronizer: Synchronizer, target: str, *, as_json: bool) -> None:
    """Synchronise whenever files of another machine arrive, and every minute, until interrupted."""
    import watchfiles

    stop = StopSignal()
    stop.install()
    try:
        _show(synchronizer.run(target), as_json=as_json)
        if not as_json:
            print_message("Waiting for changes. Stop with Ctrl-C.")
        folders = [target] if "://" not in target else []
        for _ in watchfiles.watch(
            *folders, rust_timeout=_WAIT_MS, yield_on_timeout=True, raise_interrupt=False, recursive=True
        ):
            stop.check()
            try:
                result = synchronizer.run(target, silent)
            except (SyncRefused, LeaseHeld) as problem:  # The next round tries again.
                print_message(problem.full_message)
                continue
            if result.has_sent or result.has_received:
                _show(result, as_json=as_json)
    except KeyboardInterrupt:
        print_message("Stopped. What was sent and received is complete.")
