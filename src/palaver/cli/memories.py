"""`palaver recall` and `palaver memories`: search, list, show, edit, undo and relate memories."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from msgspec import to_builtins

from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.core.memory import EventKind, MemoryRevision, MemoryState, state_label
from palaver.core.memory_filter import STORED, MemoryFilter, order_of
from palaver.core.origin import Origin
from palaver.observe.memory import MemoryCore, RecalledMemory, UndoneChange, contradicting
from palaver.search.query.secret_placeholders import redacted
from palaver.templates.json_output import to_json
from palaver.templates.memory_changes import changes

from .memory_access import memory_core, print_memory, types_of
from .options import as_json
from .output import print_json, print_page, renderer
from .project_option import in_project, known_namespaces_of
from .review import review

of_type = click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only memories of this type (can be repeated)."
)
with_tag = click.option(
    "--tag", "tags", multiple=True, metavar="WORD", help="Only memories with this tag (can be repeated)."
)


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N", help="Maximum results."
)
@of_type
@with_tag
@in_project
@as_json
def recall(
    query: Sequence[str], *, limit: int, types: Sequence[str], tags: Sequence[str], project: str | None, as_json: bool
) -> None:
    """Search memories, best first. `palaver search` also searches conversations and documents."""
    words = redacted(" ".join(query), Home.find())
    with memory_core() as core:
        wanted = _filter(core, project, types, tags)
        found = core.recall(words, wanted, limit=limit)
        weak = [] if found else core.nearest(words, wanted)
        admitted, total = core.count(wanted), core.count()
        contradictions = contradicting(core.store, [each.stored for each in found or weak])
    if as_json:
        shown = {"memories": _rows(found), "total": len(found), "query": words, "weak": _rows(weak)}
        print_json({**shown, "contradictions": contradictions})
    else:
        answers, near = ([(each.stored, each.score) for each in some] for some in (found, weak))
        values = {"found": answers, "weak": near, "admitted": admitted, "total": total}
        print_page(renderer().render("recalled", contradictions=contradictions, **values))


@click.group()
def memories() -> None:
    """List, show, edit, review and undo memories."""


memories.add_command(review)


@memories.command("list")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="Maximum memories."
)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Skip the first N memories.")
@of_type
@with_tag
@in_project
@click.option(
    "--order",
    default="created_at",
    show_default=True,
    metavar="FIELD",
    help="Field to sort by: importance, confidence, ...",
)
@click.option("--all", "every", is_flag=True, help="Include forgotten and expired memories.")
@as_json
def list_memories(
    *,
    limit: int,
    offset: int,
    types: Sequence[str],
    tags: Sequence[str],
    project: str | None,
    order: str,
    every: bool,
    as_json: bool,
) -> None:
    """List memories, newest first."""
    with memory_core() as core:
        wanted = _filter(core, project, types, tags, tuple(MemoryState) if every else STORED)
        found = core.page(
            wanted, order=order_of(order), limit=limit, offset=min(offset, 2**63 - 1)
        )  # This is SQLite's largest integer.
        admitted, total = core.count(wanted), core.count()
    if as_json:
        print_json({"memories": found, "total": admitted, "limit": limit, "offset": offset})
    else:
        print_page(renderer().render("memories", memories=found, admitted=admitted, total=total))


@memories.command("show")
@click.argument("memory_id", metavar="ID")
@as_json
def show_memory(memory_id: str, *, as_json: bool) -> None:
    """Show all fields of a memory, with its statistics and edges."""
    with memory_core() as core:
        stored = core.get(memory_id)
        edges = core.graph.edges_of(stored)
    if as_json:
        print_json({**to_json(stored), "edges": edges})
    else:
        print_page(renderer().render("memory", stored=stored, edges=edges))


@memories.command("edit")
@click.argument("memory_id", metavar="ID")
@as_json
def edit_memory(memory_id: str, *, as_json: bool) -> None:
    """Edit the text of a memory in your editor (VISUAL or EDITOR).

    An unchanged or empty text leaves the memory unchanged.
    """
    edited = False
    with memory_core() as core:
        stored = core.get(memory_id, forgotten=False)
        text = _edit(stored.memory.content)
        if text and text != stored.memory.content.strip():
            stored = core.revise(memory_id, MemoryRevision(content=text, origin=Origin.HUMAN))
            edited = stored.memory.content.strip() != text
            message = f"Edited {memory_id}: {stored.memory.content}"
        elif text:
            message = f"{memory_id} is unchanged."
        else:
            message = f"{memory_id} is unchanged, because the text was empty. To forget it: palaver forget {memory_id}"
    print_memory(stored, message, as_json=as_json, redacted=edited)


def _edit(text: str) -> str:
    """Return the text that the user edited.

    Raises:
        PalaverError: No terminal is available, or the editor fails.
    """
    if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        hint = "Nothing was changed. Run the command at a terminal, or set EDITOR to a program that needs no terminal."
        raise PalaverError("The editor requires a terminal", hint=hint)
    try:
        edited = click.edit(text, extension=".md")
    except (click.ClickException, UnicodeDecodeError) as error:
        hint = "Nothing was changed. Try another editor, for example with VISUAL=nano, which has priority over EDITOR."
        reason = error.message if isinstance(error, click.ClickException) else "the edited text is not UTF-8"
        raise PalaverError(f"The editor failed: {reason}", hint=hint) from None
    return (text if edited is None else edited).strip()


@memories.command("undo", short_help="Undo the last edit, or restore a forgotten memory.")
@click.argument("memory_ids", nargs=-1, required=True, metavar="ID...")
@as_json
def undo(memory_ids: Sequence[str], *, as_json: bool) -> None:
    """Undo the last edit of a memory, or restore a forgotten or superseded memory.

    Run the command again to undo the previous edit. With several IDs, an error on one leaves all memories unchanged.
    """
    with memory_core() as core:
        undone = [(each.stored, *_undo_message(each)) for each in core.undo(memory_ids)]
    if as_json and len(undone) > 1:
        print_json({"memories": [{**to_json(stored), "undone": what} for stored, what, _ in undone]})
        return
    for stored, what, message in undone:
        print_memory(stored, message, as_json=as_json, redacted=False, undone=what)


def _undo_message(undone: UndoneChange) -> tuple[str, str]:
    """Return the name of the undone change, and a message about it."""
    stored = undone.stored
    [(event, changed, former)] = changes(stored, [undone.event])
    if event.kind is EventKind.RESTORED:
        what, message = "restored", f"Restored {stored.id}, which {event.context}. It is {state_label(stored.state)}."
    else:
        what, message = changed, f"Undid the last edit of {stored.id} ({changed})."
    before = f" (before: {former})" if former else ""
    return what, f"{message} Content: {stored.memory.content}{before}"


@memories.command("history")
@click.argument("memory_id", metavar="ID")
@as_json
def history(memory_id: str, *, as_json: bool) -> None:
    """Show the history of a memory, newest first."""
    with memory_core() as core:
        stored, events = core.get(memory_id), core.history(memory_id)
    if as_json:
        print_json({"id": stored.id, "events": events})
    else:
        print_page(renderer().memory_history(stored, events))


@memories.command("graph", short_help="Draw the graph of related memories.")
@click.argument("memory_id", metavar="ID")
@click.option(
    "--depth", type=int, default=2, show_default=True, metavar="N", help="Maximum distance from the memory, in edges."
)
@as_json
def graph(memory_id: str, *, depth: int, as_json: bool) -> None:
    """Draw the graph of related memories as a Mermaid diagram for Markdown viewers."""
    with memory_core() as core:
        around = core.graph.inspect(memory_id, depth=depth)
    if as_json:
        nodes = [to_builtins(node) for node in around.nodes]
        paths = [{"ids": path.ids, "relevance": path.relevance} for path in around.paths]
        print_json({"origin": around.origin, "nodes": nodes, "edges": around.edges, "paths": paths})
    else:
        click.echo(f"```mermaid\n{around.mermaid()}\n```".encode())  # to copy, so no line is wrapped


def _filter(
    core: MemoryCore,
    project: str | None,
    types: Sequence[str],
    tags: Sequence[str],
    states: tuple[MemoryState, ...] = STORED,
) -> MemoryFilter:
    namespaces = known_namespaces_of(core, project) if project else ()
    return MemoryFilter(namespaces=namespaces, types=types_of(core, types), tags=tuple(tags), states=states)


def _rows(found: Sequence[RecalledMemory]) -> list[dict[str, Any]]:
    return [{**to_json(each.stored), "score": each.score, "similarity": each.similarity} for each in found]
