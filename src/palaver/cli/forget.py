"""`palaver forget`: memories, and what was archived, forgotten or erased, after a preview of exactly that."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from palaver.core import ids
from palaver.core.amount import many
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.templates.json_output import to_json

from .dates import dated
from .held import archived_as, memory_core
from .output import as_json, print_json, print_page, renderer
from .progress import progress_bars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.deletion import DeletionPreview, DeletionRequest, RestoreResult
    from palaver.observe.deletion.deleter import Deleter

_WORDS = "palaver.forget.words"


class _Typed(click.Command):
    """Keeps the words that were typed, to show the command again."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        typed = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        if "--confirm" in typed:
            place = typed.index("--confirm")
            del typed[place : place + 2]
        context.meta[_WORDS] = [word for word in typed if not word.startswith("--confirm=")]
        return context


@click.command(cls=_Typed)
@click.argument("what", nargs=-1, metavar="[WHAT]...")
@click.option(
    "--project", "projects", multiple=True, metavar="NAME", help="Only of this project, by name or folder, or `.`."
)
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only what this agent wrote.")
@dated("--since", help="Only from then on: 2026-03-01, last tuesday, march, ...")
@dated("--until", last=True, help="Only up to then; that day or month included.")
@click.option("--mentions", default="", metavar="TEXT", help="Only where this stands, in upper or lower case.")
@click.option("--erase", is_flag=True, help="Leave no byte of it. It cannot be undone.")
@click.option("--force", is_flag=True, help="Golden rules and pinned memories too.")
@click.option("--confirm", metavar="TOKEN", help="Do what the preview with this token showed.")
@click.option("--undo", type=int, metavar="N", help="Restore what deletion N removed.")
@click.option("--for-good", type=int, metavar="N", help="Erase now what was forgotten under this number.")
@click.option("--list", "listed", is_flag=True, help="List what was forgotten and can be had back.")
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
    for_good: int | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Forget what was archived, learned or remembered. It shows exactly what would go before anything does.

    WHAT is an id that `search` printed, the id of a session (the first 6 characters will do), or the path of a
    transcript, with `:FIRST-LAST` for some of its lines. Options narrow it, or name it alone: `palaver forget
    --mentions TEXT`.

    What is forgotten is found no more, and archiving the same files again does not bring it back; for 30 days it can be
    undone. With --erase no byte of it is left here, which is verified; what was forgotten before goes with it, unless a
    date narrows it. What a fork repeats belongs to its original, and goes with that.

    Memories named by their ids are forgotten at once; `palaver memories undo ID` holds them again.
    """
    narrowed = projects or agents or since or until or mentions or erase
    past = {"--undo": undo is not None, "--for-good": for_good is not None, "--list": listed}
    if asked := [name for name, given in past.items() if given]:
        if len(asked) > 1 or what or narrowed or force or confirm:
            raise click.UsageError(f"{asked[0]} goes with nothing but --json.")
        _look_after(undo, for_good, as_json=as_json)
        return
    if what and not narrowed and all(map(_is_memory, what)):
        _put_away(what, force=force, as_json=as_json)
        return
    from palaver.core.deletion import DeletionRequest
    from palaver.core.periods import between

    first, end = between(since, until)
    wanted = DeletionRequest(
        targets=tuple(what),
        projects=tuple(map(archived_as, projects)),
        agents=tuple(agents),
        since=first,
        until=end,
        mentions=mentions,
        erase=erase,
        force=force,
    )
    _forget(wanted, confirm, as_json=as_json)


def _forget(wanted: DeletionRequest, token: str | None, *, as_json: bool) -> None:
    """Show what would go, or do what was shown."""
    with _forgetter() as forgetter:
        if not token:
            with progress_bars() as reporter:
                preview = forgetter.preview(wanted, reporter)
            token = _ask(preview, as_json=as_json)
            if token is None:
                return
        with progress_bars() as reporter:
            outcome = forgetter.forget(wanted, token, reporter)
    if outcome.number is None:
        _refuse(outcome.preview, as_json=as_json)
    elif as_json:
        print_json(outcome)
    else:
        print_page(renderer().render("forget_done", done=outcome))
    if outcome.number is None or outcome.left or (outcome.proof is not None and not outcome.proof.holds):
        sys.exit(1)


def _ask(preview: DeletionPreview, *, as_json: bool) -> str | None:
    """The token where a person says yes; otherwise what to do next is said."""
    if as_json:
        print_json({**to_json(preview), "done": False})
        return None
    print_page(renderer().render("forget_preview", preview=preview))
    if preview.empty:
        return None
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.echo()
        if click.confirm("Erase it?" if preview.erase else "Forget it?"):
            return preview.token
        click.echo("Nothing was removed.")
        return None
    click.echo(f"\nNothing was removed yet. To go on:\n{_again(preview.token)}")
    return None


def _refuse(preview: DeletionPreview, *, as_json: bool) -> None:
    if as_json:
        print_json({**to_json(preview), "done": False, "changed": True})
        return
    click.echo("Nothing was removed: it is not what the preview with this token showed. Now it is:\n")
    print_page(renderer().render("forget_preview", preview=preview))
    if not preview.empty:
        click.echo(f"\nTo go on:\n{_again(preview.token)}")


def _again(token: str) -> str:
    """The command that was typed, with the token of what was shown."""
    words = click.get_current_context().meta.get(_WORDS, [])
    return f"  {shlex.join(['palaver', 'forget', *words, '--confirm', token])}"


def _look_after(undo: int | None, for_good: int | None, *, as_json: bool) -> None:
    """Undo, erase for good, or list what was forgotten."""
    from palaver.core.deletion import RestoreResult

    with _forgetter() as forgetter, progress_bars() as reporter:
        undone = forgetter.undo(undo, reporter) if undo is not None else RestoreResult()
        finished = forgetter.for_good(for_good, reporter) if for_good is not None else None
        found = forgetter.forgotten()
    done = finished is None or finished.done
    problems = [each.told for each in finished.problems] if finished is not None else []
    if as_json:
        from msgspec import to_builtins

        past = {"forgotten": list(map(to_builtins, found)), "finished": done}
        print_json({**past, "left": [held.id for held in undone.left], "problems": problems})
    elif undo is not None:
        _tell(undone)
    elif for_good is not None:
        click.echo(
            "Erased."
            if done
            else "Not finished: another process reads the database, or a copy is damaged (see `palaver doctor`). "
            "`palaver archive` finishes it."
        )
        for problem in problems:
            click.echo(problem)
    else:
        print_page(renderer().render("forget_list", past=found))
    if not done:
        sys.exit(1)


def _tell(undone: RestoreResult) -> None:
    click.echo("Restored, with all its IDs. It can be searched now.")
    if undone.unobserved:
        click.echo(f"Run `palaver archive` to extract observations from {many(undone.unobserved, 'exchange')}.")
    if undone.left:
        left = ", ".join(held.id for held in undone.left)
        click.echo(f"Still forgotten, because another memory says the same by now: {left}.")


def _is_memory(what: str) -> bool:
    return what.startswith(ids.PREFIXES["memory"]) or ids.key(what, "memory") is not None


def _put_away(what: Sequence[str], *, force: bool, as_json: bool) -> None:
    from palaver.templates.memory_changes import undoing
    from palaver.templates.quote import line

    with memory_core() as core:
        named = list(map(core.get, what))
        pinned = [] if force else [held for held in named if held.memory.pinned]
        done = core.forget([held.id for held in named if held not in pinned], force=force, reason="palaver forget")
    gone = [held.id for held in done.forgotten]
    protected = list(dict.fromkeys(held.id for held in (*done.protected, *pinned)))
    if as_json:
        print_json({"forgotten": gone, "protected": protected})
        sys.exit(1 if protected else 0)
    if gone:
        click.echo(f"Forgotten: {', '.join(gone)}. To hold {'it' if len(gone) == 1 else 'them'} again: {undoing(gone)}")
        for held in done.forgotten:
            if held.memory.path:
                click.echo(f"Its file stays: {line(held.memory.path)} (`palaver forget {held.id} --erase` deletes it.)")
    elif not protected:
        click.echo("Nothing to do: they were forgotten before.")
    if protected:
        click.echo(f"Not forgotten, as golden rules or pinned: {', '.join(protected)}. Add --force to forget them too.")
        sys.exit(1)


def _forgetter() -> Deleter:
    from palaver.observe.deletion.deleter import Deleter

    home = Home.find()
    config = Config.read(home.config)
    return Deleter(home, config.model, config.exclude)
