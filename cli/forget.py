"""`palaver forget`: delete or erase archived content and memories after a preview, and undo it."""

import shlex
import sys
from collections.abc import Sequence

import click

from ..core import ids
from ..core.agent_names import agent_named
from ..core.deletion import DeletionPreview, DeletionRequest, RestoreResult
from ..core.reports import many
from ..core.time_expressions import between
from ..observe.archive import Archive
from ..observe.mnemonics import forget_with_files
from ..templates.environment import undo_command
from ..templates.json_output import to_json
from ..templates.quote import line
from .memories import memory_core
from .output import as_json, date_option, is_interactive, print_json, print_page, progress_bars, renderer
from .project_option import archived_as, only_projects

_ARGUMENTS = "palaver.forget.arguments"


class _RecordsArguments(click.Command):
    """Command that records its arguments, so that the preview can print the command that confirms it."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        words = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        if "--confirm" in words:
            place = words.index("--confirm")
            del words[place : place + 2]
        context.meta[_ARGUMENTS] = [word for word in words if not word.startswith("--confirm=")]
        return context


@click.command(cls=_RecordsArguments)
@click.argument("what", nargs=-1, metavar="[WHAT]...")
@only_projects
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent.")
@date_option("--since", "--after", "since", help="First date, inclusive: 2026-03-01, last tuesday, march, ...")
@date_option("--until", "--before", "until", last=True, help="Last date, inclusive.")
@click.option("--mentions", default="", metavar="TEXT", help="Only exchanges that contain TEXT, ignoring case.")
@click.option("--erase", is_flag=True, help="Erase every byte and verify the erasure. This cannot be undone.")
@click.option("--force", is_flag=True, help="Include golden rules and pinned memories.")
@click.option("--confirm", metavar="TOKEN", help="Delete the content listed in the preview that printed TOKEN.")
@click.option("--undo", type=int, metavar="N", help="Restore the content of deletion N.")
@click.option(
    "--erase-now", type=int, metavar="N", help="Erase the content of deletion N now instead of after 30 days."
)
@click.option("--list", "listed", is_flag=True, help="List deletions.")
@as_json
def forget(
    what: Sequence[str],
    *,
    projects: Sequence[str],
    agents: Sequence[str],
    since: str | None,
    until: str | None,
    mentions: str,
    erase: bool,
    force: bool,
    confirm: str | None,
    undo: int | None,
    erase_now: int | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Delete conversations or memories. The command shows a preview first.

    WHAT is an ID from `palaver search`, a session ID (or its first characters), or the path of a transcript. Append
    `:FIRST-LAST` to select lines. Exchanges are always deleted completely. Options narrow the selection. Without WHAT,
    they select from the whole archive: `palaver forget --mentions TEXT`.

    Deleted content no longer appears in search, and archiving the same files again does not bring it back. A deletion
    can be undone for 30 days. Then the content is erased. --erase removes every byte at once and verifies it, including
    content that was deleted before. Your agents' own files are not deleted.

    Lines that a fork repeats belong to the original session, and are deleted with that session.

    If you give only IDs of memories, they are forgotten without a preview. `palaver memories undo ID` restores them.
    """
    narrowed = projects or agents or since or until or mentions or erase
    modes = {"--undo": undo is not None, "--erase-now": erase_now is not None, "--list": listed}
    if chosen := [name for name, given in modes.items() if given]:
        if len(chosen) > 1 or what or narrowed or force or confirm:
            raise click.UsageError(f"{chosen[0]} can only be combined with --json.")
        _manage(undo, erase_now, as_json=as_json)
        return
    if what and not narrowed and all(map(_is_memory, what)):
        _forget_memories(what, force=force, as_json=as_json)
        return

    first, end = between(since, until)
    request = DeletionRequest(
        targets=tuple(what),
        projects=tuple(map(archived_as, projects)),
        agents=tuple(map(agent_named, agents)),
        since=first,
        until=end,
        mentions=mentions,
        erase=erase,
        force=force,
    )
    _delete(request, confirm, as_json=as_json)


def _delete(request: DeletionRequest, token: str | None, *, as_json: bool) -> None:
    """Delete the content that `token` confirms. Without a token, show a preview and ask the user to confirm it."""
    with Archive.find().deletions as deleter:
        if not token:
            with progress_bars() as reporter:
                preview = deleter.preview(request, reporter)
            token = _confirmed(preview, as_json=as_json)
            if token is None:
                return
        with progress_bars() as reporter:
            result = deleter.delete(request, token, reporter)
    _withdraw()
    if result.number is None:
        _show_changed(result.preview, as_json=as_json)
    elif as_json:
        print_json(to_json(result))
    else:
        print_page(renderer().render("forget_done", done=result))
    if result.number is None or result.remaining_files or (result.check is not None and not result.check.passed):
        sys.exit(1)


def _confirmed(preview: DeletionPreview, *, as_json: bool) -> str | None:
    """Show a preview, and return its token if the user confirms it at the terminal, or else None.

    Without a terminal, print the command that confirms the deletion.
    """
    if as_json:
        print_json({**to_json(preview), "done": False})
        return None
    print_page(renderer().render("forget_preview", preview=preview))
    if preview.is_empty:
        return None
    if is_interactive():
        click.echo()
        if click.confirm("Erase it?" if preview.erase else "Delete it?"):
            return preview.token
        click.echo("Nothing was deleted.")
        return None
    click.echo(f"\nNothing was deleted yet. To confirm, run:\n{_confirmation(preview.token)}")
    return None


def _show_changed(preview: DeletionPreview, *, as_json: bool) -> None:
    if as_json:
        print_json({**to_json(preview), "done": False, "changed": True})
        return
    click.echo("Nothing was deleted, because the token confirms another preview. This is the current one:\n")
    print_page(renderer().render("forget_preview", preview=preview))
    if not preview.is_empty:
        click.echo(f"\nTo confirm, run:\n{_confirmation(preview.token)}")


def _confirmation(token: str) -> str:
    words = click.get_current_context().meta.get(_ARGUMENTS, [])
    return f"  {shlex.join(['palaver', 'forget', *words, '--confirm', token])}"


def _manage(undo: int | None, erase_now: int | None, *, as_json: bool) -> None:
    """Undo, erase or list past deletions."""
    with Archive.find().deletions as deleter, progress_bars() as reporter:
        restored = deleter.undo(undo, reporter) if undo is not None else RestoreResult()
        erased = deleter.erase(erase_now, reporter) if erase_now is not None else None
        deletions = deleter.history()
    done = erased is None or erased.done
    problems = [each.full_message for each in erased.problems] if erased is not None else []
    if as_json:
        print_json({"deletions": to_json(deletions), "finished": done, **to_json(restored), "problems": problems})
    elif undo is not None:
        click.echo("Restored. Search finds the content again. Session summaries get new IDs. Other IDs stay the same.")
        if restored.unobserved:
            click.echo(f"Run `palaver archive` to extract observations from {many(restored.unobserved, 'exchange')}.")
        if restored.not_restored:
            click.echo(
                f"Not restored, because newer memories have the same content: {', '.join(restored.not_restored)}."
            )
    elif erase_now is not None:
        reason = "another process is reading the database, or a copy is damaged (see `palaver doctor`)"
        click.echo("Erased." if done else f"Not finished: {reason}. Run `palaver archive` to finish.")
        for problem in problems:
            click.echo(problem)
    else:
        print_page(renderer().render("forget_list", deletions=deletions))
    if not done:
        sys.exit(1)


def _withdraw() -> None:
    """Withdraw what was deleted from the team, if this machine belongs to one."""
    with Archive.find() as archive:
        if archive.store.team.joined() is not None:
            from .team import withdraw_from_team

            withdraw_from_team(archive)


def _is_memory(what: str) -> bool:
    return what.startswith(ids.PREFIXES["memory"]) or ids.key(what, "memory") is not None


def _forget_memories(what: Sequence[str], *, force: bool, as_json: bool) -> None:
    with memory_core() as core:
        named = list(map(core.get, what))
        pinned = [] if force else [stored for stored in named if stored.memory.pinned]
        wanted = [stored.id for stored in named if stored not in pinned]
        done = forget_with_files(core, wanted, force=force, reason="palaver forget")
    _withdraw()
    gone = [stored.id for stored in done.forgotten]
    protected = list(dict.fromkeys(stored.id for stored in (*done.protected, *pinned)))
    if as_json:
        print_json({"forgotten": gone, "protected": protected})
        sys.exit(1 if protected else 0)
    if gone:
        click.echo(f"Forgotten: {', '.join(gone)}. To restore: {undo_command(gone)}")
        for path in done.deleted:
            click.echo(f"Deleted: {line(path)}")
        for problem in done.kept:
            click.echo(f"Not deleted: {line(problem)}")
    elif not protected:
        click.echo("Already forgotten.")
    if protected:
        click.echo(f"Not forgotten: {', '.join(protected)} (golden rules or pinned). Add --force to forget them.")
        sys.exit(1)
