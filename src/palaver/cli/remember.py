"""`palaver remember`: store a memory."""

from collections.abc import Sequence
from typing import Any

import click
from msgspec.structs import replace

from palaver.core.clock import now
from palaver.core.memory import Memory, MemoryState
from palaver.core.origin import Origin
from palaver.observe.memory import RememberResult
from palaver.templates.quote import line

from .memory_access import memory_core, print_redacted, redacted_kinds, types_of
from .options import as_json
from .output import print_json
from .project_option import folder_of, in_project, namespace_of


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--type", "kind", default="preference", show_default=True, metavar="TYPE", help="decision, fact, ...")
@click.option("--title", default="", metavar="TEXT", help="A heading; without one it is how the text begins.")
@in_project
@click.option("--importance", type=float, default=0.7, show_default=True, metavar="0-1", help="How much it matters.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="A word to find it by; can be repeated.")
@click.option("--pin", is_flag=True, help="Protect it from losing confidence.")
@click.option("--days", type=click.IntRange(1, 36_500), metavar="N", help="Expire after N days (default: never).")
@as_json
def remember(
    text: Sequence[str],
    *,
    kind: str,
    title: str,
    project: str | None,
    importance: float,
    tags: Sequence[str],
    pin: bool,
    days: int | None,
    as_json: bool,
) -> None:
    """Store a memory: a preference, a decision, a pattern, a fact.

    Every agent and `palaver search` find it at once. Memories that it replaces or contradicts are listed. Secrets are
    redacted first.
    """
    memory = Memory(
        " ".join(text),
        kind,
        title,
        project=folder_of(project),
        importance=importance,
        tags=tuple(tags),
        source="user_explicit",
        origin=Origin.HUMAN,
        pinned=pin,
        valid_until=None if days is None else now() + days * 86_400_000,
    )
    with memory_core(make=True) as core:
        [known] = types_of(core, [kind])
        namespace = namespace_of(core, project, claim=True)
        done = core.remember(replace(memory, type=known, namespace=namespace))
    if as_json:
        told: dict[str, Any] = {"superseded": [held.id for held in done.superseded]}
        told["proposed"] = [held.id for held in done.proposed]
        told["edges"] = list(done.edges)
        told["conflicts"] = [each.stored.id for each in done.conflicts]
        print_json({"memory": done.stored, "duplicate": done.duplicate, **told, **redacted_kinds(done.stored)})
    else:
        _tell(done)


def _tell(done: RememberResult) -> None:
    """Print what became of a memory, and how to settle what disagrees."""
    if done.duplicate:
        click.echo(f"Held already as {done.stored.id}: {line(done.stored.memory.content)}")
        if done.stored.state is MemoryState.SUPERSEDED:
            click.echo(f"A newer memory superseded it. To restore it: palaver memories undo {done.stored.id}")
        return
    click.echo(f"Remembered as {done.stored.id} in {done.stored.memory.namespace}.")
    print_redacted(done.stored)
    for held in done.superseded:
        click.echo(f"It replaces {held.id}: {line(held.memory.content)}")
    proposed = {held.id for held in done.proposed}
    for each in done.conflicts:
        relation = "may replace" if each.stored.id in proposed else "disagrees with"
        reason = f" ({line(each.judgement.reason)}, judged by {each.judgement.judge})"
        click.echo(f"It {relation} {each.stored.id}: {line(each.stored.memory.content)}{reason}")
    if done.superseded:
        click.echo(f"To restore the old one: palaver memories undo {done.superseded[0].id}")
    if done.conflicts:
        older = done.conflicts[0].stored.id
        click.echo(f"To settle it: palaver forget {older}, or palaver forget {done.stored.id}, which is the new one.")
