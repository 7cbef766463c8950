"""`palaver remember`: store a memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from palaver.core.clock import now
from palaver.core.errors import UnknownProject
from palaver.core.memory import Memory, MemoryState
from palaver.core.origin import Origin
from palaver.core.text import similar_names
from palaver.observe.memory import MemoryCore, RememberResult
from palaver.search.query.project_names import check_projects
from palaver.templates.memory_changes import undo_command
from palaver.templates.quote import line

from .memory_access import memory_core, print_redacted, redacted_kinds, types_of
from .options import as_json
from .output import print_json, print_message
from .project_option import folder_of, in_project, namespace_of


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option(
    "--type",
    "kind",
    default="preference",
    show_default=True,
    metavar="TYPE",
    help="Type of the memory: decision, fact, ...",
)
@click.option("--title", default="", metavar="TEXT", help="Title (default: the beginning of the text).")
@in_project
@click.option(
    "--importance", type=float, default=0.7, show_default=True, metavar="0-1", help="Importance of the memory."
)
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Tag of the memory (can be repeated).")
@click.option("--pin", is_flag=True, help="Pin the memory, so that its confidence does not decay.")
@click.option(
    "--days", type=click.IntRange(1, 36_500), metavar="N", help="Let the memory expire after N days (default: never)."
)
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

    Agents and `palaver search` find the new memory immediately. The command lists memories that the new memory
    replaces or contradicts. Without --project, it applies to every project. Secrets are redacted first.
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
        typo = _similar_projects(core, project)
        namespace = namespace_of(core, project, claim=True)
        result = core.remember(replace(memory, type=known, namespace=namespace))
    if as_json:
        fields: dict[str, Any] = {
            "superseded_ids": [old.id for old in result.superseded],
            "proposed_superseded_ids": [old.id for old in result.proposed],
            "edges": list(result.edges),
            "conflicts": [each.stored.id for each in result.conflicts],
        }
        print_json({"memory": result.stored, "duplicate": result.duplicate, **fields, **redacted_kinds(result.stored)})
    else:
        _print_result(result)
    if typo:
        print_message(
            f"{project} is a new project. Did you mean {' or '.join(typo)}? To undo: palaver forget {result.stored.id}"
        )


def _similar_projects(core: MemoryCore, project: str | None) -> Sequence[str]:
    """Return the projects with similar names if no project has the given name yet."""
    if project is None or Path(folder_of(project)).is_dir():
        return ()
    try:
        check_projects(core.store, [project])
    except UnknownProject as unknown:
        return similar_names(project, unknown.near)
    return ()


def _print_result(result: RememberResult) -> None:
    """Print the result, and commands to resolve conflicts."""
    stored = result.stored
    if result.duplicate:
        click.echo(f"Already stored as {stored.id}: {line(stored.memory.content)}")
        if stored.state is MemoryState.SUPERSEDED:
            click.echo(f"A newer memory superseded it. To restore it: {undo_command([stored.id])}")
        return
    click.echo(f"Stored as {stored.id} in {stored.memory.namespace}.")
    print_redacted(stored)
    for old in result.superseded:
        click.echo(f"The new memory replaces {old.id}: {line(old.memory.content)}")
    proposed = {old.id for old in result.proposed}
    for each in result.conflicts:
        relation = "may replace" if each.stored.id in proposed else "contradicts"
        reason = f" ({line(each.judgement.reason)}, judged by {each.judgement.judge})"
        click.echo(f"The new memory {relation} {each.stored.id}: {line(each.stored.memory.content)}{reason}")
    if result.superseded:
        click.echo(f"To restore the old memory: {undo_command([result.superseded[0].id])}")
    if result.conflicts:
        click.echo(
            f"To keep only one memory, run `palaver forget {result.conflicts[0].stored.id}` (old) "
            f"or `palaver forget {stored.id}` (new)."
        )
