"""`palaver hooks`: run hooks of coding agents, and switch them on and off."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from ..core.config import Config, write_settings
from ..core.conversation import now
from ..core.errors import InvalidInput, UnknownProject
from ..core.home import Home
from ..core.hooks import HOOKS, SESSION_END, HookEvent
from ..core.reports import InjectionTotal
from ..observe.archive import Archive
from .output import as_json, print_json, print_page, renderer
from .program import program_words

SECONDS: Final = 5.0
"""Maximum duration of a hook in seconds. A hook that takes longer ends without a reply."""
_LOCK_WAIT: Final = 30.0
_MONTH: Final = 30 * 24 * 3_600_000
_EVENTS: Final = [str(event) for event in HookEvent]

_events = click.argument("events", nargs=-1, metavar="[EVENT]...", type=click.Choice(_EVENTS))
_project = click.option("--project", metavar="NAME", help="Only for this project: name, folder, or `.`.")


_HELP: Final = f"""Show, switch on or switch off the hooks that inject text into sessions: `status`, `on`, `off`.

Events: {", ".join(f"`{event}` ({event.hook.note})" if event.hook.note else f"`{event}`" for event in HookEvent)}.
"""


@click.group(help=_HELP)
def hooks() -> None:
    """Group the commands for hooks."""


@hooks.command("status", short_help="Show which hooks are on, and what they injected.")
@as_json
def status(*, as_json: bool) -> None:
    """Show which hooks are on, and what they injected in the last 30 days."""
    from ..agents.clients.hook_setup import hooked_agents

    archive = Archive.find()
    config = archive.config
    agents, totals = hooked_agents(), _totals(archive)
    if as_json:
        events = {event: event in config.hooks for event in _EVENTS}
        print_json({"events": events, "installed_in": agents, "hooks_off": config.hooks_off, "injections": totals})
    else:
        print_page(renderer().render("hooks", events=_EVENTS, agents=agents, config=config, totals=totals))


@hooks.command("on", short_help="Switch hooks on.")
@_events
@_project
@as_json
def on(events: Sequence[str], *, project: str | None, as_json: bool) -> None:
    """Switch EVENTS on. Without EVENTS, restore the default: only `session-start` is on.

    With --project, switch all chosen hooks on again in a project.
    """
    home, config = _writable(events, project)
    if project is None:
        _set(home, {*config.hooks, *events} if events else {*Config().hooks})
    else:
        named = _named(project)
        kept = [each for each in config.hooks_off if each not in {named, project}]
        if len(kept) == len(config.hooks_off):
            raise InvalidInput(
                f"Hooks are not off in {named}",
                hint="Run `palaver hooks status` to see in which projects they are off.",
            )
        write_settings(home.config, {"hooks_off": kept or None})
    _show(as_json=as_json)
    if project is None and not as_json:
        click.echo("Codex, Gemini CLI and OpenCode: run `palaver install hooks` again to add these hooks.")


@hooks.command("off", short_help="Switch hooks off.")
@_events
@_project
@as_json
def off(events: Sequence[str], *, project: str | None, as_json: bool) -> None:
    """Switch EVENTS off, by default all. With --project, switch all hooks off in a project."""
    home, config = _writable(events, project)
    if project is None:
        _set(home, set(config.hooks) - set(events or _EVENTS))
    else:
        named = _named(project)
        _check_project(home, named)
        write_settings(home.config, {"hooks_off": list(dict.fromkeys([*config.hooks_off, named]))})
    _show(as_json=as_json)


@hooks.command("run", short_help="Answer a hook of a coding agent.")
@click.argument("event", metavar=f"{{{','.join(HOOKS)}}}")
def run(event: str) -> None:
    """Answer the call of a hook on standard input, as coding agents send it.

    The reply is one line of JSON, or nothing. The exit status is always 0, and nothing is printed to standard error.
    `session-end` records the session that ended, and archives it in the background. An unknown event is ignored.
    """
    # A thread can end the process even while SQLite waits for a lock. No data is lost by that.
    deadline = threading.Timer(SECONDS, os._exit, (0,))
    deadline.daemon = True
    with suppress(Exception):  # A hook never disturbs the agent: no message, no failure.
        home = Home.find()
        if event == SESSION_END:
            if call := b"" if sys.stdin.isatty() else _standard_input():
                _record_end(home, call)
                _archive_in_background(home)
            else:
                _archive_ended(home)
            return
        deadline.start()
        if reply := _reply(HookEvent(event), _standard_input(), home):
            click.echo(reply)
        if event == HookEvent.SESSION_START.value:
            _archive_in_background(home)
    deadline.cancel()


def _reply(event: HookEvent, data: bytes, home: Home) -> str:
    """Return the reply to the call of a hook, or an empty text."""
    from ..agents.hooks.hooks import SELECTORS, HookCall, answer

    call = HookCall.parse(event, data)
    if call is None:
        return ""
    text = answer(call, Archive(home), SELECTORS[event])
    return call.reply(text) if text else ""


def _standard_input() -> bytes:
    """Return the data of a hook call from standard input. Data beyond the maximum length is read and discarded."""
    from ..agents.hooks.hooks import INPUT_MAX

    data = sys.stdin.buffer.read(INPUT_MAX + 1)
    while sys.stdin.buffer.read(INPUT_MAX):
        pass
    return data


def _record_end(home: Home, call: bytes) -> None:
    """Append the call of a hook to the queue of ended sessions, unless the hooks are off."""
    from ..archiver.ingest.ended_sessions import record_end

    if home.has_database and not home.is_read_only and HookEvent.SESSION_START in Archive(home).config.hooks:
        record_end(home, call)


def _archive_ended(home: Home) -> None:
    """Archive the sessions in the queue, unless the background archiver does it."""
    from ..archiver.ingest.ended_sessions import ended_sessions
    from ..archiver.ingest.transcripts import in_paths
    from ..archiver.store import WATCHER

    if home.is_read_only or not home.has_database:
        return
    archive = Archive(home)
    hooks = archive.config.hooks
    with ended_sessions(home) as paths:
        with archive.store as store:
            watched = store.leases.holder(WATCHER) is not None
        if paths and not watched and HookEvent.SESSION_START in hooks:
            with archive.pipeline() as pipeline:
                pipeline.run(in_paths(paths), patience=_LOCK_WAIT)


def _archive_in_background(home: Home) -> None:
    """Start a background process that archives the sessions in the queue, if there are any."""
    from ..archiver.ingest.ended_sessions import has_ended_sessions

    if has_ended_sessions(home) and not home.is_read_only:
        command = [*program_words(), "hooks", "run", SESSION_END]
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip


def _writable(events: Sequence[str], project: str | None) -> tuple[Home, Config]:
    """Create the home if it is missing, and return it with its settings.

    Raises:
        UsageError: The call has both events and a project.
    """
    if events and project is not None:
        raise click.UsageError("--project concerns all hooks. Leave out the events.")
    home = Home.find()
    home.make()
    return home, Archive(home).config


def _set(home: Home, chosen: set[str]) -> None:
    """Write the chosen events to the settings, or remove the setting if they are the default."""
    listed = [event for event in _EVENTS if event in chosen]
    write_settings(home.config, {"hooks": None if listed == list(Config().hooks) else listed})


def _named(project: str) -> str:
    """Return a project as it is written in `hooks_off`: a name, or the folder of the project."""
    from ..core.home import root_of

    folder = Path(project).expanduser()
    return str(root_of(folder)) if folder.is_dir() and (project in {".", ".."} or "/" in project) else project


def _check_project(home: Home, named: str) -> None:
    """Check that a name or folder in `hooks_off` is a repository, or is known to the archive.

    Raises:
        UnknownProject: It is neither a repository nor known to the archive.
    """
    from ..core.home import is_root
    from ..search.query.tokenizer import check_projects

    if "/" in named and is_root(Path(named)):
        return
    if not home.has_database:
        raise UnknownProject(named)
    with Archive(home).store as store:
        check_projects(store, [named])


def _totals(archive: Archive) -> list[InjectionTotal]:
    """Return the totals of the injections in the last 30 days, by event."""
    if not archive.home.has_database:
        return []
    with archive.store as store:
        return store.injections.totals(now() - _MONTH)


def _show(*, as_json: bool) -> None:
    """Print the status of the hooks after a change."""
    context = click.get_current_context()
    context.invoke(status, as_json=as_json)
