"""`palaver remember`, `recall`, `memories` and `context`: what is held to be true."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palaver.core.clock import now
from palaver.core.config import Config
from palaver.core.errors import InvalidInput, PalaverError, StoreMissing
from palaver.core.home import Home

from .judging import judging
from .output import as_json, complain, print_json, renderer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.memory import HeldMemory
    from palaver.observe.memory import MemoryCore, Recalled, Remembered

in_project = click.option("--project", metavar="NAME", help="A project's name or folder; `.` is the one you are in.")


@click.command()
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@click.option("--type", "kind", default="preference", show_default=True, metavar="TYPE", help="decision, fact, ...")
@click.option("--title", default="", metavar="TEXT", help="A heading; without one it is how the text begins.")
@in_project
@click.option("--importance", type=float, default=0.7, show_default=True, metavar="0-1", help="How much it matters.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="A word to find it by; can be repeated.")
@click.option("--pin", is_flag=True, help="Protect it from fading.")
@click.option("--days", type=click.IntRange(1, 36_500), metavar="N", help="Valid for so many days; for ever without.")
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
    """Hold something to be true: a preference, a decision, a pattern, a fact.

    It is found at once by every agent and by `palaver search`. What it replaces or contradicts is said. Secrets are
    taken out of it first.
    """
    from palaver.core.memory import Memory
    from palaver.core.origin import Origin

    memory = Memory(
        " ".join(text),
        kind,
        title,
        _namespace(project),
        _folder(project),
        importance=importance,
        tags=tuple(tags),
        source="user_explicit",
        origin=Origin.HUMAN,
        pinned=pin,
        valid_until=None if days is None else now() + days * 86_400_000,
    )
    with _core(make=True) as core:
        done = core.remembering.remember(memory)
    if as_json:
        from palaver.templates.memory_shapes import edge_json, memory_json

        told: dict[str, Any] = {"superseded": [held.id for held in done.superseded]}
        told["edges"] = [edge_json(each) for each in done.edges]
        told["conflicts"] = [each.held.id for each in done.conflicts]
        print_json({"memory": memory_json(done.held), "duplicate": done.duplicate, **told, **_secrets(done.held)})
    else:
        _tell(done)


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
    from palaver.core.memory_filter import MemoryFilter

    where = (_namespace(project),) if project else ()
    wanted = MemoryFilter(namespaces=where, types=tuple(types), tags=tuple(tags))
    words = " ".join(query)
    with _core() as core:
        found = core.recalling.recall(words, wanted, limit=limit)
        weak = [] if found else core.recalling.nearest(words, wanted)
        held = core.memories.count()
    if as_json:
        print_json({"memories": _rows(found), "total": len(found), "query": words, "weak": _rows(weak)})
    else:
        answers, near = ([(each.held, each.score) for each in some] for some in (found, weak))
        click.echo(renderer().recalled(answers, near, held), nl=False)


@click.group()
def memories() -> None:
    """Look after what is held: `list`, `show`, `edit`, `history`, `graph`, `undo`."""


@memories.command("list")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="How many."
)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out so many.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; can be repeated.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only with this tag; can be repeated.")
@in_project
@click.option("--order", default="created_at", show_default=True, metavar="FIELD", help="importance, confidence, ...")
@click.option("--all", "every", is_flag=True, help="Those that were superseded, forgotten or have expired, too.")
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
    from palaver.core.memory import MemoryState
    from palaver.core.memory_filter import ACTIVE, MemoryFilter, order_of

    wanted = MemoryFilter(
        namespaces=(_namespace(project),) if project else (),
        types=tuple(types),
        tags=tuple(tags),
        states=tuple(MemoryState) if every else ACTIVE,
    )
    with _core() as core:
        found = core.memories.page(wanted, order=order_of(order), limit=limit, offset=offset)
        total, held = core.memories.count(wanted), core.memories.count()
    if as_json:
        from palaver.templates.memory_shapes import memory_json

        print_json({"memories": list(map(memory_json, found)), "total": total, "limit": limit, "offset": offset})
    else:
        click.echo(renderer().memories(found, total, held), nl=False)


@memories.command("show")
@click.argument("memory_id", metavar="ID")
@as_json
def show_memory(memory_id: str, *, as_json: bool) -> None:
    """Show a memory whole, with what it earned and how it is linked."""
    with _core() as core:
        held = core.memories.get(memory_id)
        edges = core.graph.neighbours([held.key])
    if as_json:
        from palaver.templates.memory_shapes import edge_json, memory_json

        print_json({**memory_json(held), "edges": list(map(edge_json, edges))})
    else:
        click.echo(renderer().memory(held, edges), nl=False)


@memories.command("edit")
@click.argument("memory_id", metavar="ID")
@as_json
def edit_memory(memory_id: str, *, as_json: bool) -> None:
    """Edit a memory's text in your editor (EDITOR). Leave it as it is, or empty, to change nothing."""
    from palaver.core.origin import Origin
    from palaver.observe.memory import Revision

    with _core() as core:
        held = core.memories.get(memory_id)
        text = _edited(held.memory.content)
        if text and text != held.memory.content.strip():
            held = core.memories.revise(memory_id, Revision(content=text, origin=Origin.HUMAN))
            words = f"{memory_id} now says: {held.memory.content}"
        elif text:
            words = f"{memory_id} is as it was."
        else:
            words = (
                f"{memory_id} is as it was, because nothing was left of it. To put it away: palaver forget {memory_id}"
            )
    _say(held, words, as_json=as_json)


def _edited(text: str) -> str:
    """What a person makes of a text in their editor; raises `PalaverError` where that fails."""
    try:
        edited = click.edit(text, extension=".md")
    except (click.ClickException, UnicodeDecodeError) as error:
        hint = "Nothing was changed. Name another editor, such as EDITOR=nano, and try again."
        reason = error.message if isinstance(error, click.ClickException) else "what it left is not UTF-8"
        raise PalaverError(f"the editor did not work: {reason}", hint=hint) from None
    return (text if edited is None else edited).strip()


@memories.command("undo", short_help="Take back the last edit, or hold again what was put away.")
@click.argument("memory_id", metavar="ID")
@as_json
def undo(memory_id: str, *, as_json: bool) -> None:
    """Take back the last edit of a memory, or hold again what was forgotten or superseded."""
    with _core() as core:
        held = core.memories.undo(memory_id)
    _say(held, f"{memory_id} is {held.state} and says: {held.memory.content}", as_json=as_json)


@memories.command("history")
@click.argument("memory_id", metavar="ID")
@as_json
def history(memory_id: str, *, as_json: bool) -> None:
    """Tell what happened to a memory, newest first."""
    with _core() as core:
        held, events = core.memories.get(memory_id), core.memories.history(memory_id)
    if as_json:
        from palaver.templates.memory_shapes import memory_event_json

        print_json({"id": held.id, "events": list(map(memory_event_json, events))})
    else:
        click.echo(renderer().memory_history(held, events), nl=False)


@memories.command("graph", short_help="Draw what lies around a memory.")
@click.argument("memory_id", metavar="ID")
@click.option("--depth", type=int, default=2, show_default=True, metavar="N", help="How many edges away.")
@click.option("--svg", is_flag=True, help="A picture for a browser: palaver memories graph ID --svg > graph.svg")
@as_json
def graph(memory_id: str, *, depth: int, svg: bool, as_json: bool) -> None:
    """Draw what lies around a memory as a Mermaid graph, which Markdown viewers show as a picture, or as an SVG."""
    if svg and as_json:
        raise click.UsageError("--svg does not go with --json.")
    with _core() as core:
        around = core.graph.inspect(memory_id, depth=depth)
    if as_json:
        from dataclasses import asdict

        from palaver.templates.memory_shapes import edge_json

        nodes, paths = [asdict(node) for node in around.nodes], [asdict(path) for path in around.paths]
        edges = [edge_json(edge) for edge in around.edges]
        print_json({"origin": around.origin, "nodes": nodes, "edges": edges, "paths": paths})
    elif svg:
        from palaver.templates.memory_picture import picture

        click.echo(picture(around.nodes, around.edges), nl=False)
    else:
        click.echo(f"```mermaid\n{around.mermaid()}\n```")


@click.command()
@in_project
@click.option("--query", default="", metavar="WORDS", help="What the session is about.")
@click.option("--budget", type=int, default=4000, show_default=True, metavar="TOKENS", help="Never more than this.")
@as_json
def context(*, project: str | None, query: str, budget: int, as_json: bool) -> None:
    """Print what a new session in this folder should know: golden rules, preferences, decisions.

    Prints nothing where nothing is relevant; why that is, it says at a terminal. What is little trusted is left out.
    """
    from palaver.core.memory_filter import MemoryFilter

    namespace = _namespace(project or ".")
    try:
        with _core() as core:
            chosen = core.contexts.choose(namespace, query, budget)
            known = core.memories.count_by("namespace", MemoryFilter())
    except StoreMissing as missing:
        if as_json:
            raise
        _hint(str(missing), missing.hint)
        return
    sections = [(section.title, section.memories) for section in chosen.sections]
    text = renderer().memory_context(sections, chosen.left_out)
    if as_json:
        counts = {"memory_count": chosen.memories, "golden_rule_count": chosen.golden, "left_out": chosen.left_out}
        print_json({"context": text, "token_estimate": chosen.tokens, **counts})
    elif chosen.left_out and not text:
        complain(f"Nothing fits into {budget} tokens; left out: {chosen.left_out}. Give a larger --budget.")
    else:
        click.echo(text, nl=False)
        if namespace not in known:
            others = f"They are held for: {', '.join(list(known)[:5])}." if known else "None is held at all yet."
            _hint(f"No memories are held for {namespace}.", f"{others} `palaver remember TEXT` holds one.")


def _hint(*rows: str) -> None:
    """Tell a person why there is nothing; an agent's hook, which reads this at each start, must not be told."""
    if sys.stderr.isatty():
        complain(*rows)


def _core(*, make: bool = False) -> MemoryCore:
    """The memory core of this home; raises `StoreMissing` where there is nothing to ask yet."""
    home = Home.find()
    if not make:
        home.check()
    from palaver.observe.memory import MemoryCore

    config = Config.read(home.config)
    return MemoryCore.open(home, config.model, judging(home, config))


def _rows(found: Sequence[Recalled]) -> list[dict[str, Any]]:
    from palaver.templates.memory_shapes import memory_json

    return [{**memory_json(each.held), "score": each.score, "similarity": each.similarity} for each in found]


def _folder(project: str | None) -> str:
    return str(Path.cwd()) if project == "." else project or ""


def _namespace(project: str | None) -> str:
    from palaver.core.memory import project_namespace

    found = project_namespace(_folder(project))
    if project and found == "global" and project != ".":
        raise InvalidInput(f"No name of a project: {project}", hint="Give its name or its folder.")
    return found


def _tell(done: Remembered) -> None:
    """What became of it, and what to do about what disagrees."""
    if done.duplicate:
        click.echo(f"Held already as {done.held.id}: {done.held.memory.content}")
        return
    click.echo(f"Remembered as {done.held.id} in {done.held.memory.namespace}.")
    _tell_secrets(done.held)
    for held in done.superseded:
        click.echo(f"It replaces {held.id}: {held.memory.content}")
    for each in done.conflicts:
        reason = f" ({each.judgement.reason}, judged by {each.judgement.judge})" if each.judgement else ""
        click.echo(f"It disagrees with {each.held.id}: {each.held.memory.content}{reason}")
    if done.superseded:
        click.echo(f"To hold the old one again: palaver memories undo {done.superseded[0].id}")
    if done.conflicts:
        click.echo(f"To settle it: palaver forget {done.conflicts[0].held.id}, or forget the new one.")


def _say(held: HeldMemory, words: str, *, as_json: bool) -> None:
    if as_json:
        from palaver.templates.memory_shapes import memory_json

        print_json({**memory_json(held), **_secrets(held)})
    else:
        from palaver.templates.quote import line

        click.echo(line(words))
        _tell_secrets(held)


def _secrets(held: HeldMemory) -> dict[str, list[str]]:
    """The kinds of secrets that were taken out, where there are any."""
    from palaver.archiver.privacy.disclosures import kinds_of

    kinds = kinds_of(held.memory)
    return {"secrets_removed": kinds} if kinds else {}


def _tell_secrets(held: HeldMemory) -> None:
    for kinds in _secrets(held).values():
        click.echo(f"Secrets were taken out of it and are stored nowhere: {', '.join(kinds)}.")
