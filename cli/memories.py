"""Memory commands: `palaver remember`, `recall`, `memories` and `context`.

- `remember` stores a memory.
- `recall` and `memories` search, list, show, edit, undo and relate memories.
- `memories review` approves or declines proposed memories and golden rules.
- `context` prints memories and past sessions of a project for a new session.
"""

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec import to_builtins
from msgspec.structs import replace

from ..archiver.redaction import kinds_of
from ..core.conversation import Origin, now
from ..core.errors import InvalidInput, PalaverError, StoreMissing, UnknownProject
from ..core.home import Home
from ..core.memory import (
    PROJECT,
    STORED,
    EventKind,
    Memory,
    MemoryFilter,
    MemoryRevision,
    MemoryState,
    StoredMemory,
    known_type,
    order_of,
    state_label,
)
from ..core.reports import many
from ..core.text import similar_names
from ..core.tokens import count
from ..observe.archive import Archive
from ..observe.extraction.preferences import EXCHANGE, PreferenceCandidate
from ..observe.memory import MemoryCore, RecalledMemory, RememberResult, SessionContext, UndoneChange, contradicting
from ..observe.memory_review import MemoryReview, Proposal
from ..search.query.query_analysis import redacted
from ..search.query.tokenizer import check_projects
from ..templates.environment import changes, undo_command
from ..templates.json_output import to_json
from ..templates.quote import line
from .demo import refuse_demo_only
from .language_model import judge_factory
from .output import as_json, is_interactive, print_json, print_message, print_page, renderer
from .project_option import folder_of, in_project, is_folder, known_namespaces_of, namespace_of


def memory_core(*, make: bool = False) -> MemoryCore:
    """Open the memories of this home. With `make`, create the archive if it does not exist.

    Raises:
        StoreMissing: No archive exists.
    """
    archive = Archive.find()
    if not make:
        refuse_demo_only(archive.home, "memories list")
        archive.home.check()
    archive.make_judge = judge_factory(archive)
    return archive.memories


def types_of(core: MemoryCore, names: Sequence[str]) -> tuple[str, ...]:
    """Return the stored spelling of memory types.

    Raises:
        InvalidMemoryType: A type is unknown.
    """
    stored_types = core.count_by("type", MemoryFilter(states=tuple(MemoryState)))
    return tuple(known_type(name, stored_types) for name in names)


def print_memory(stored: StoredMemory, message: str, *, as_json: bool, redacted: bool, **fields: str) -> None:
    """Print a message about a memory, or the memory as JSON with additional fields.

    With `redacted`, also report the kinds of redacted secrets.
    """
    if as_json:
        print_json({**to_json(stored), **fields, **(redacted_kinds(stored) if redacted else {})})
    else:
        click.echo(line(message))
        if redacted:
            print_redacted(stored)


def redacted_kinds(stored: StoredMemory) -> dict[str, list[str]]:
    """Return a field that lists the kinds of secrets redacted in a memory, or no field if nothing was redacted."""
    kinds = kinds_of(stored.memory)
    return {"secrets_removed": kinds} if kinds else {}


def print_redacted(stored: StoredMemory) -> None:
    """Print the kinds of secrets redacted in a memory, if any."""
    for kinds in redacted_kinds(stored).values():
        click.echo(f"Redacted secrets, which are not stored: {', '.join(kinds)}.")


@click.command()
@in_project
@click.option("--query", default="", metavar="WORDS", help="Topic of the session.")
@click.option(
    "--budget", type=int, default=1500, show_default=True, metavar="TOKENS", help="Maximum tokens in the output."
)
@as_json
def context(*, project: str | None, query: str, budget: int, as_json: bool) -> None:
    """Print what a new session in this folder should know.

    Golden rules come first, then other memories, decisions in force, results of the last sessions, and their files.
    `palaver show ID` prints the details of a line. If there is nothing to print, the reason is printed to standard
    error (except in hooks). Text of low trust is omitted. Global memories of agents are omitted until you approve them.
    """
    text = ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer().memory_context(sections, chosen.left_out, chosen.contradictions, chosen.digest)
        return count(text)

    try:
        with memory_core() as core:
            # A hook can start in a folder that has no session yet.
            exists = not project or Path(folder_of(project)).is_dir()
            namespaces = (namespace_of(core, project or "."),) if exists else known_namespaces_of(core, project or "")
            # A name means all folders with this name, as in `palaver sessions`. A folder means only itself.
            is_name = bool(project) and not is_folder(project or "")
            namespace = namespaces[0]
            chosen = core.contexts.select(cost, namespace, query, budget, namesakes=is_name)
            spaces = core.count_by("namespace", MemoryFilter())
    except StoreMissing as missing:
        if as_json:
            raise
        _hint(str(missing), missing.hint)
        return
    if as_json:
        counts = {
            "memory_count": chosen.memories,
            "golden_rule_count": chosen.golden_rules,
            "left_out": chosen.left_out,
            "digest_lines": chosen.digest_lines,
        }
        print_json(
            {"context": text, "token_estimate": chosen.tokens, **counts, "contradictions": chosen.contradictions}
        )
        return
    if text:
        print_page(text)
    elif chosen.left_out or chosen.omitted_lines:
        print_message(f"No line fits into {budget} tokens. Use a larger --budget.")
    elif not spaces.keys().isdisjoint(namespaces):
        _hint(
            f"No memory in {_shown(namespace)} is both trusted and relevant for a new session.",
            "Sessions start with rules, preferences, decisions and patterns. `palaver recall WORDS` finds others.",
            "Memory files of a repository are omitted until you run `palaver mnemonics allow`.",
        )
    else:
        others = f"Namespaces with memories: {', '.join(list(spaces)[:5])}." if spaces else "No memories stored yet."
        _hint(
            f"No memories or trusted observations for {_shown(namespace)}.",
            f"{others} To store one, run `palaver remember TEXT`.",
        )


def _shown(namespace: str) -> str:
    """Return the text for a namespace in messages, such as `project palaver` or `global`."""
    return f"project {namespace.removeprefix(PROJECT)}" if namespace.startswith(PROJECT) else namespace


def _hint(*rows: str) -> None:
    """Print the reason for an empty result, unless the hook of an agent runs this command."""
    if sys.stderr.isatty() or not _is_hook():
        print_message(*rows)


def _is_hook() -> bool:
    """Return whether the hook of an agent runs this command. Hooks have a pipe or a socket as standard input."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # Standard input is closed or is not a file.
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


_KEYS: Final = {
    "a": ("approve", "store the preference, or make the memory a golden rule"),
    "d": ("decline", "never propose it again"),
    "s": ("skip", "decide later; Enter does the same"),
    "q": ("quit", "stop here; earlier decisions stay"),
    "?": ("help", "show this list"),
}
"""Keys that the user can press, each with the name and the description of its action."""


@click.command()
@click.option("--approve", multiple=True, metavar="ID", help="Approve this proposal without asking (can be repeated).")
@click.option("--decline", multiple=True, metavar="ID", help="Decline this proposal without asking (can be repeated).")
@as_json
def review(*, approve: Sequence[str], decline: Sequence[str], as_json: bool) -> None:
    """Approve or decline proposed preferences and golden rules.

    An approved preference is stored. An approved proven memory becomes a golden rule. A declined proposal is never
    proposed again. At a terminal, the command shows each proposal with its source and asks for a decision:
    approve, decline, skip, quit, or ? for help.
    """
    archive = Archive.find()
    archive.home.check()
    with archive:
        proposals = archive.review.proposals()
        if approve or decline:
            _decide(archive.review, approve, decline, as_json=as_json)
        elif as_json:
            print_json({"waiting": list(map(_fields, proposals))})
        elif not proposals:
            click.echo(
                "No proposals to review. Run `palaver archive` to find preferences that you stated since the last run."
            )
        elif is_interactive():
            _ask(archive.review)
        else:
            click.echo("\n".join(map(_as_text, proposals)))
            click.echo("To decide, run `palaver memories review` with --approve ID or --decline ID.")


def preference_fields(candidate: PreferenceCandidate) -> dict[str, Any]:
    """Return the JSON fields of a preference of the user, or of a rule that an agent noted."""
    memory = candidate.memory
    return {
        "id": candidate.id,
        "kind": "preference",
        "type": memory.type,
        "content": memory.content,
        "namespace": memory.namespace,
        "session_id": memory.session_id,
        "exchange": memory.metadata[EXCHANGE],
        "path": candidate.path,
        "line": candidate.line,
        "quote": memory.metadata["quote"],
        "origin": memory.origin,
        "trust": memory.origin.trust.name.lower(),
        "reason": candidate.reason,
    }


def _fields(proposal: Proposal) -> dict[str, Any]:
    """Return the JSON fields of a proposal."""
    if proposal.candidate is not None:
        return preference_fields(proposal.candidate)
    stored = proposal.proven
    assert stored is not None
    return {
        "id": proposal.id,
        "kind": "golden_rule",
        "content": proposal.content,
        "namespace": proposal.namespace,
        "confidence": stored.stats.confidence,
        "successes": stored.stats.successes,
        "stored_by": stored.memory.source or stored.memory.origin,
    }


def _as_text(proposal: Proposal) -> str:
    """Return a proposal as terminal text."""
    fields = _fields(proposal)
    texts = {name: line(str(value)) for name, value in fields.items()}
    if proposal.candidate is not None:
        typed = fields["origin"] == Origin.HUMAN
        label = "Gotcha" if fields["type"] == "issue" else "Preference" if typed else "Rule"
        author = "your words" if typed else "a note"
        source = f"{author} in session {texts['session_id']}, {texts['path']} line {texts['line']}"
        source += f" ({texts['exchange']})\n  Trust: {texts['trust']}"
        source += f"{', because you typed it' if typed else ''}. It {texts['reason']}."
    else:
        label = "Golden rule"
        source = f"confidence {texts['confidence']}, {texts['successes']} successes, stored by {texts['stored_by']}"
    return f"{texts['id']}  {label} for {texts['namespace']}: {texts['content']}\n  Source: {source}"


def _decide(review: MemoryReview, approve: Sequence[str], decline: Sequence[str], *, as_json: bool) -> None:
    """Approve and decline proposals by ID.

    Raises:
        InvalidInput: An ID is unknown. No proposal has been changed.
    """
    if both := sorted({*approve} & {*decline}):
        raise click.UsageError(f"The same ID cannot be approved and declined: {', '.join(both)}.")
    proposed = {proposal.id for proposal in review.proposals()}
    for name in (*approve, *decline):
        if name not in proposed:
            raise InvalidInput(
                f"{name} is not a proposal to review", hint="Run `palaver memories review` to list proposals."
            )
    approved = {name: review.approve(name).id for name in dict.fromkeys(approve)}
    for name in dict.fromkeys(decline):
        review.decline(name)
    if as_json:
        print_json({"approved": approved, "declined": list(decline)})
        return
    for name, memory in approved.items():
        click.echo(_approved(name, memory))
    for name in decline:
        click.echo(f"Declined: {name}. It will not be proposed again.")


def _approved(name: str, memory: str) -> str:
    return f"Approved: {memory} is a golden rule." if name == memory else f"Approved: {name} is stored as {memory}."


def _ask(review: MemoryReview) -> None:
    """Show each proposal and ask for a decision, until all are decided or the user quits."""
    proposals = list(review.proposals())
    for number, proposal in enumerate(proposals, 1):
        click.echo(f"\n{number} of {len(proposals)}  {_as_text(proposal)}")
        match _decision():
            case "a":
                click.echo(_approved(proposal.id, review.approve(proposal.id).id))
            case "d":
                review.decline(proposal.id)
                click.echo("Declined. It will not be proposed again.")
            case "q":
                left = len(proposals) - number + 1
                click.echo(f"Stopped. {many(left, 'proposal')} left. Run `palaver memories review` to continue.")
                return
            case _:
                click.echo("Skipped. It will be proposed again.")


def _decision() -> str:
    """Return the key of a decision. `?` and unknown keys show what each key does."""
    keys = ", ".join(f"{key} {name}" for key, (name, _) in _KEYS.items())
    while True:
        answer: str = click.prompt(f"[{keys}]", default="s", show_default=False, prompt_suffix=" ").strip().lower()
        if (key := answer[:1]) in _KEYS and key != "?" and _KEYS[key][0].startswith(answer):
            return key
        for name, meaning in _KEYS.values():
            click.echo(f"  {name}: {meaning}")


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
        where = _filter(core, project, types, tags)
        matches = core.recall(words, where, limit=limit)
        weak = [] if matches else core.nearest(words, where)
        admitted, total = core.count(where), core.count()
        contradictions = contradicting(core.store, [match.stored for match in matches or weak])
    if as_json:
        values = {"memories": _rows(matches), "total": len(matches), "query": words, "weak": _rows(weak)}
        print_json({**values, "contradictions": contradictions})
    else:
        answers, nearest = ([(match.stored, match.score) for match in some] for some in (matches, weak))
        values = {"found": answers, "weak": nearest, "admitted": admitted, "total": total}
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
        where = _filter(core, project, types, tags, tuple(MemoryState) if every else STORED)
        rows = core.page(
            where, order=order_of(order), limit=limit, offset=min(offset, 2**63 - 1)
        )  # This is SQLite's largest integer.
        admitted, total = core.count(where), core.count()
    if as_json:
        print_json({"memories": rows, "total": admitted, "limit": limit, "offset": offset})
    else:
        print_page(renderer().render("memories", memories=rows, admitted=admitted, total=total))


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
        undone = [(change.stored, *_undo_message(change)) for change in core.undo(memory_ids)]
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


def _rows(matches: Sequence[RecalledMemory]) -> list[dict[str, Any]]:
    return [{**to_json(match.stored), "score": match.score, "similarity": match.similarity} for match in matches]


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
        [stored_type] = types_of(core, [kind])
        typo = _similar_projects(core, project)
        namespace = namespace_of(core, project, claim=True)
        result = core.remember(replace(memory, type=stored_type, namespace=namespace))
    if as_json:
        fields: dict[str, Any] = {
            "superseded_ids": [old.id for old in result.superseded],
            "proposed_superseded_ids": [old.id for old in result.proposed],
            "edges": list(result.edges),
            "conflicts": [conflict.stored.id for conflict in result.conflicts],
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
    for conflict in result.conflicts:
        relation = "may replace" if conflict.stored.id in proposed else "contradicts"
        reason = f" ({line(conflict.judgement.reason)}, judged by {conflict.judgement.judge})"
        click.echo(f"The new memory {relation} {conflict.stored.id}: {line(conflict.stored.memory.content)}{reason}")
    if result.superseded:
        click.echo(f"To restore the old memory: {undo_command([result.superseded[0].id])}")
    if result.conflicts:
        click.echo(
            f"To keep only one memory, run `palaver forget {result.conflicts[0].stored.id}` (old) "
            f"or `palaver forget {stored.id}` (new)."
        )
