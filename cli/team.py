"""`palaver team`: share with a team. The commands of its server are in `team_server`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from ..core.errors import InvalidInput, LeaseHeld, TeamRefused, TeamUnreachable
from ..core.home import folder_path, is_windows_path
from ..core.reports import many
from ..observe.archive import Archive
from .demo import refuse_demo
from .output import as_json, is_interactive, print_json, print_message, print_page, progress_bars, renderer
from .project_option import is_folder
from .team_server import SERVER_COMMANDS

if TYPE_CHECKING:
    from ..team.client.levels import LevelChange
    from ..team.client.push import PushReport

_LEVELS: Final = ("private", "metrics", "team", "raw")
_WITHDRAW_SECONDS: Final = 10.0
"""Seconds to wait for each reply when a deletion is withdrawn."""


@click.group()
def team() -> None:
    """Share sessions, observations and memories with a team, on a server of your own.

    Join a team, share projects, and push. Nothing is shared until you share a project or a memory.

    The commands serve, migrate, create, invite, people, token, revoke, remove, clean and metrics are for the
    administrator of the server. They need the package with its extra: pip install 'palaver-archive[team]'
    """


@team.command()
@click.argument("url")
@click.argument("code")
@as_json
def join(*, url: str, code: str, as_json: bool) -> None:
    """Join a team with a code that its administrator gave you.

    URL is the address of the server. It begins with https://, or http:// for a server on this machine. CODE works once,
    for 15 minutes. Data of this machine is only ever sent to this address. A machine that was revoked or copied joins
    again with a new code. Without an archive, an empty one is created.
    """
    from ..team.client import membership as memberships

    with _new_archive() as archive:
        left = archive.store.team.count_on_server()
        membership = memberships.join(archive.home, archive.store, url, code)
        choices, report = archive.store.team.choices(), None
        is_sharing = bool(choices.levels or choices.memories)
        if not is_sharing and archive.store.team.to_send(1):
            if left:
                print_message(
                    f"This machine left {many(left, 'item')} on the server before. They are withdrawn now, because "
                    "leaving the team ended the sharing of all projects."
                )
            report = withdraw_from_team(archive)
    if as_json:
        withdrawn = 0 if report is None else report.withdrawn
        named = {"team": membership.team_name, "person": membership.person_name, "url": membership.url}
        print_json({**named, "withdrawn": withdrawn})
        return
    click.echo(f"This machine belongs to the team {membership.team_name} as {membership.person_name} now.")
    if is_sharing:
        click.echo("It shares what it shared before. To see it: palaver team status. To send it: palaver team push")
    else:
        click.echo("Nothing is shared yet. To share a project: palaver team share PROJECT")
    if archive.config.team_search:
        click.echo(
            f"`palaver search` sends its words to {membership.url}, to find what the team shares. To switch this off, "
            f"set team_search = false in {archive.home.config}, or use --no-team."
        )


@team.command()
@click.option("--dry-run", is_flag=True, help="Show what would leave this machine. Nothing is sent.")
@as_json
def push(*, dry_run: bool, as_json: bool) -> None:
    """Send what is new, and withdraw what is not shared any more.

    Secrets are removed again by the current rules, and home folders are shortened to `~`. The server refuses items in
    which its own rules find a secret. A push can be interrupted at any time. The next one continues.
    """
    from ..team.client.push import TeamPush

    with _own_archive() as archive:
        pushing = TeamPush(archive)
        if dry_run:
            report = pushing.preview()
        else:
            with progress_bars() as reporter:
                report = pushing.run(reporter)
    if as_json:
        print_json(report)
    else:
        print_page(renderer().render("team_pushed", report=report, first=""))


@team.command()
@click.argument("what", metavar="PROJECT|MEMORY")
@click.option("--level", type=click.Choice(_LEVELS), default="team", show_default=True, help="What the team may see.")
@click.option("--full-copies", is_flag=True, help="Confirm --level raw without being asked for the project's name.")
@click.option("--dry-run", is_flag=True, help="Show what would leave this machine. Nothing is shared or sent.")
@as_json
def share(*, what: str, level: str, full_copies: bool, dry_run: bool, as_json: bool) -> None:
    """Share a project or a memory with the team, from the next push on.

    PROJECT is a name, a folder, or `.` (current folder). MEMORY is an ID such as mem_7. The sessions of sub-agents stay
    here, and are not counted.

    At the level metrics, tokens and costs leave by day, agent and model, and the administrator sees sums of at least
    three people. At the level team, the team also sees conversations without secrets, observations, summaries and
    golden rules.
    At the level raw, it also sees full copies of these conversations, with complete outputs of tools and thinking. This
    needs the project's name as confirmation, or --full-copies.
    Other memories are shared only if you choose them.
    """
    from ..team.client import levels
    from ..team.client.push import TeamPush
    from ..team.protocol import Level
    from ..templates.environment import staying

    if full_copies and level != Level.RAW:
        raise click.UsageError("--full-copies confirms --level raw.")
    with _own_archive() as archive:
        change = _change(archive, what, level)
        if level == Level.RAW:
            levels.check_full_copies(archive)
        if dry_run:
            choices = change.applied(archive.store.team.choices())
            report = TeamPush(archive).preview(choices, change.identity)
            shared = change.shared if change.memory is not None else replace(change.shared, stays=report.stays)
        else:
            if level == Level.RAW and not full_copies:
                _confirm_full_copies(change.shared.name, can_ask=not as_json)
            report, shared = None, change.saved(archive)
    if as_json:
        print_json({"would_share" if dry_run else "shared": shared, "preview": report})
        return
    if change.memory is None and not shared.sessions:
        click.echo(f"No session of {shared.name} is archived yet.")
    if report is not None:
        first = f"palaver team share {shlex.quote(what)}{'' if level == Level.TEAM else f' --level {level}'}"
        print_page(renderer().render("team_pushed", report=report, first=first))
    else:
        sessions = f", {many(shared.sessions, 'session')}" if change.memory is None else ""
        click.echo(f"Shared from the next push on: {shared.name} (level {shared.level}{sessions}).")
        if shared.stays:
            click.echo(f"Stays on this machine: {staying(shared.stays)}.")
        click.echo("To see what will leave this machine: palaver team push --dry-run. To send it: palaver team push")


@team.command()
@click.argument("what", metavar="PROJECT|MEMORY")
@as_json
def unshare(*, what: str, as_json: bool) -> None:
    """Stop sharing a project or a memory, and withdraw it at once.

    PROJECT can also be a project whose folder does not exist any more.
    """
    with _own_archive() as archive:
        change = _change(archive, what, "private")
        was_shared = change.is_shared(archive.store.team.choices())
        with archive.store.transaction():
            change.save(archive.store)
        report = withdraw_from_team(archive)
    if as_json:
        unshared = change.shared.name if was_shared else None
        print_json({"unshared": unshared, "withdrawn": 0 if report is None else report.withdrawn})
    elif was_shared:
        click.echo(f"{change.shared.name} is private now.")
    elif change.memory is not None:
        click.echo(f"{change.shared.name} was not shared by itself. Golden rules are shared with their project.")
    else:
        click.echo(f"{change.shared.name} was not shared.")


@team.command()
@as_json
def status(*, as_json: bool) -> None:
    """Show what is shared, what waits, and what the server holds."""
    archive = _own_archive()
    with archive:
        if archive.home.is_new or archive.store.team.joined() is None:
            if as_json:
                print_json({"team": None})
            else:
                click.echo("This machine belongs to no team. To join one: palaver team join URL CODE")
            return
        from ..team.client.team_status import team_status

        report = team_status(archive)
    if as_json:
        print_json(report)
    else:
        print_page(renderer().render("team_status", status=report))


@team.command()
@click.option("--withdraw", is_flag=True, help="Delete everything that you share, from all your machines.")
@click.option("--keep", is_flag=True, help="Leave on the server what this machine shares.")
@click.option("--local", is_flag=True, help="Do not ask the server, for example because it does not exist any more.")
@as_json
def leave(*, withdraw: bool, keep: bool, local: bool, as_json: bool) -> None:
    """Leave the team. Nothing is sent to its server any more.

    If this machine shares anything, choose what happens to it with --withdraw or --keep. What stays on the server can
    be deleted later only by another of your machines, or after joining again.
    """
    if sum((withdraw, keep, local)) > 1:
        raise click.UsageError("Use one of --withdraw, --keep and --local.")
    from ..team.client import membership as memberships

    archive = _own_archive()
    with archive:
        membership = memberships.joined(archive.store)
        shared = archive.store.team.count_on_server()
        if shared and not (withdraw or keep or local):
            raise click.UsageError(f"This machine shares {many(shared, 'item')}. Give --withdraw or --keep.")
        deleted = memberships.leave(archive.home, archive.store, withdraw=withdraw, only_here=local)
    if as_json:
        print_json({"left": membership.team_name, "deleted": deleted, "kept": 0 if withdraw else shared})
        return
    if withdraw:
        click.echo(f"Left {membership.team_name}. The server deleted {many(deleted, 'item')} that you shared.")
    elif shared:
        click.echo(
            f"Left {membership.team_name}. {many(shared, 'item')} of this machine may still be on the server. If this "
            "machine joins again, they are withdrawn."
        )
    else:
        click.echo(f"Left {membership.team_name}.")
    click.echo("Tokens for agents that your administrator gave you still work, until `palaver team revoke` ends them.")


for command in SERVER_COMMANDS:
    team.add_command(command)


def withdraw_from_team(archive: Archive) -> PushReport | None:
    """Push, and report on standard error what was withdrawn.

    Return None if the server did not answer. Then the next push withdraws the items.
    """
    from ..team.client.push import TeamPush

    try:
        report = TeamPush(archive).run(seconds=_WITHDRAW_SECONDS)
    except (LeaseHeld, TeamRefused, TeamUnreachable) as problem:
        # The server deletes nothing for a machine that it refuses, and the message names the next step.
        later = [] if isinstance(problem, TeamRefused) else ["To withdraw: palaver team push"]
        print_message(f"Not yet withdrawn from the team: {problem.full_message}", *later)
        return None
    if report.withdrawn:
        print_message(f"Withdrawn from {report.team}: {many(report.withdrawn, 'item')}. {report.erasures}")
    return report


def _own_archive() -> Archive:
    archive = Archive.find()
    refuse_demo(archive.home)
    return archive


def _new_archive() -> Archive:
    """Return the archive of the user. Create an empty one if there is none, for members who only search."""
    archive = _own_archive()
    if archive.home.is_new:
        from ..archiver.store import Store

        archive.home.prepare()
        Store.create(archive.home.database, read_only=archive.home.read_only).close()
    return archive


def _confirm_full_copies(name: str, *, can_ask: bool) -> None:
    """Ask for the name of the project. Raises `InvalidInput` without a terminal, or for another name."""
    if not (can_ask and is_interactive()):
        raise InvalidInput(
            "Sharing full copies needs a confirmation", hint="Run the command at a terminal, or add --full-copies."
        )
    click.echo(
        f"The team will be able to read the conversations of {name} completely, with all output of tools, thinking and "
        "injected texts. Only recognised secrets and home folders are removed.",
        err=True,
    )
    if click.prompt("To confirm, type the name of the project", err=True).strip() != name:
        raise InvalidInput("This is not the name of the project", hint=f"Nothing was changed. The name is {name}.")


def _change(archive: Archive, what: str, level: str) -> LevelChange:
    from ..team.client.levels import change_of
    from ..team.protocol import Level

    folder = None
    if is_windows_path(what):
        folder = folder_path(what)
    elif is_folder(what):
        folder = Path(what).expanduser().resolve()
    return change_of(archive, folder.name if folder else what, folder, Level(level))
