"""`palaver recall` and `palaver memories`: what is held is found, shown, edited and had back."""

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
from palaver.observe.memory import RecalledMemory, UndoneChange, contradicting
from palaver.search.query.secret_placeholders import redacted
from palaver.templates.json_output import to_json
from palaver.templates.memory_changes import changes

from .memory_access import memory_core, print_memory, types_of
from .options import as_json
from .output import print_json, print_page, renderer
from .project_option import in_project, namespace_of
from .review import review


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@click.option("-n", "--limit", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N", help="How many.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; can be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only with this tag; can be repeated.")
@in_project
@as_json
def recall(
    query: Sequence[str], *, limit: int, types: Sequence[str], tags: Sequence[str], project: str | None, as_json: bool
) -> None:
    """Find what is held about something, the best first. Only memories are searched; `palaver search` searches all."""
    words = redacted(" ".join(query), Home.find())
    with memory_core() as core:
        where = (namespace_of(core, project),) if project else ()
        wanted = MemoryFilter(namespaces=where, types=types_of(core, types), tags=tuple(tags))
        found = core.recall(words, wanted, limit=limit)
        weak = [] if found else core.nearest(words, wanted)
        meant, held = core.count(wanted), core.count()
        against = contradicting(core.store, [each.stored for each in found or weak])
    if as_json:
        shown = {"memories": _rows(found), "total": len(found), "query": words, "weak": _rows(weak)}
        print_json({**shown, "contradictions": against})
    else:
        answers, near = ([(each.stored, each.score) for each in some] for some in (found, weak))
        print_page(
            renderer().render(
                "recalled", found=answers, weak=near, meant=meant, held_in_all=held, contradictions=against
            )
        )


@click.group()
def memories() -> None:
    """List, show, edit, review and undo memories."""


memories.add_command(review)


@memories.command("list")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="How many."
)
@click.option("--offset", type=click.IntRange(0, 2**63 - 1), default=0, metavar="N", help="Skip the first N.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; can be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only with this tag; can be repeated.")
@in_project
@click.option("--order", default="created_at", show_default=True, metavar="FIELD", help="importance, confidence, ...")
@click.option("--all", "every", is_flag=True, help="Include forgotten and expired ones.")
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
    """List memories, the newest first."""
    states = tuple(MemoryState) if every else STORED
    with memory_core() as core:
        where = (namespace_of(core, project),) if project else ()
        wanted = MemoryFilter(namespaces=where, types=types_of(core, types), tags=tuple(tags), states=states)
        found = core.page(wanted, order=order_of(order), limit=limit, offset=offset)
        total, held = core.count(wanted), core.count()
    if as_json:
        print_json({"memories": found, "total": total, "limit": limit, "offset": offset})
    else:
        print_page(renderer().render("memories", memories=found, total=total, held_in_all=held))


@memories.command("show")
@click.argument("memory_id", metavar="ID")
@as_json
def show_memory(memory_id: str, *, as_json: bool) -> None:
    """Show a memory whole, with what it earned and how it is linked."""
    with memory_core() as core:
        held = core.get(memory_id)
        edges = core.graph.edges_of(held)
    if as_json:
        print_json({**to_json(held), "edges": edges})
    else:
        print_page(renderer().render("memory", held=held, edges=edges))


@memories.command("edit")
@click.argument("memory_id", metavar="ID")
@as_json
def edit_memory(memory_id: str, *, as_json: bool) -> None:
    """Edit a memory's text in your editor (VISUAL or EDITOR). Leave it as it is, or empty, to change nothing."""
    taken = False
    with memory_core() as core:
        held = core.get(memory_id, forgotten=False)
        text = _edited(held.memory.content)
        if text and text != held.memory.content.strip():
            held = core.revise(memory_id, MemoryRevision(content=text, origin=Origin.HUMAN))
            taken = held.memory.content.strip() != text
            words = f"{memory_id} now says: {held.memory.content}"
        elif text:
            words = f"{memory_id} is as it was."
        else:
            words = (
                f"{memory_id} is as it was, because nothing was left of it. To forget it: palaver forget {memory_id}"
            )
    print_memory(held, words, as_json=as_json, redacted=taken)


def _edited(text: str) -> str:
    """What a person makes of a text in their editor; raises `PalaverError` where that fails, or nobody is there."""
    if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        hint = "Nothing was changed. Set EDITOR to a program that needs none, or run this at a terminal."
        raise PalaverError("an editor needs a terminal, and there is none", hint=hint)
    try:
        edited = click.edit(text, extension=".md")
    except (click.ClickException, UnicodeDecodeError) as error:
        hint = "Nothing was changed. Try another editor: VISUAL=nano, say, which goes before EDITOR."
        reason = error.message if isinstance(error, click.ClickException) else "what it left is not UTF-8"
        raise PalaverError(f"the editor did not work: {reason}", hint=hint) from None
    return (text if edited is None else edited).strip()


@memories.command("undo", short_help="Take back the last edit, or hold again what was forgotten.")
@click.argument("memory_ids", nargs=-1, required=True, metavar="ID...")
@as_json
def undo(memory_ids: Sequence[str], *, as_json: bool) -> None:
    """Take back the last edit of a memory, or hold again what was forgotten or superseded.

    Done again, it takes back the edit before that. Of several memories it is done for all, or for none.
    """
    with memory_core() as core:
        told = [(undone.stored, *_told(undone)) for undone in core.undo(memory_ids)]
    if as_json and len(told) > 1:
        print_json({"memories": [{**to_json(held), "undone": done} for held, done, _ in told]})
        return
    for held, done, words in told:
        print_memory(held, words, as_json=as_json, redacted=False, undone=done)


def _told(undone: UndoneChange) -> tuple[str, str]:
    """What was taken back, in a word and in words."""
    held = undone.stored
    [(event, changed, said)] = changes(held, [undone.event])
    if event.kind is EventKind.RESTORED:
        done, words = "put away", f"{held.id} is {state_label(held.state)} again; it {event.context}."
    else:
        done, words = changed, f"The last edit of {held.id} is taken back ({changed})."
    until = f" (until now: {said})" if said else ""
    return done, f"{words} It says: {held.memory.content}{until}"


@memories.command("history")
@click.argument("memory_id", metavar="ID")
@as_json
def history(memory_id: str, *, as_json: bool) -> None:
    """Tell what happened to a memory, newest first."""
    with memory_core() as core:
        held, events = core.get(memory_id), core.history(memory_id)
    if as_json:
        print_json({"id": held.id, "events": events})
    else:
        print_page(renderer().memory_history(held, events))


@memories.command("graph", short_help="Draw the graph of related memories.")
@click.argument("memory_id", metavar="ID")
@click.option("--depth", type=int, default=2, show_default=True, metavar="N", help="How many edges away.")
@as_json
def graph(memory_id: str, *, depth: int, as_json: bool) -> None:
    """Draw the graph of related memories in Mermaid, which Markdown viewers show as a picture."""
    with memory_core() as core:
        around = core.graph.inspect(memory_id, depth=depth)
    if as_json:
        nodes, paths = [to_builtins(node) for node in around.nodes], [to_builtins(path) for path in around.paths]
        edges = list(around.edges)
        print_json({"origin": around.origin, "nodes": nodes, "edges": edges, "paths": paths})
    else:
        click.echo(f"```mermaid\n{around.mermaid()}\n```")


def _rows(found: Sequence[RecalledMemory]) -> list[dict[str, Any]]:
    return [{**to_json(each.stored), "score": each.score, "similarity": each.similarity} for each in found]
