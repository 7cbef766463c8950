"""`palaver memories review`: the user decides what becomes a memory or a golden rule."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from msgspec import Struct

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.core.memory import StoredMemory
from palaver.observe.extraction.preferences import PreferenceCandidate, decline, keep, preference_candidates
from palaver.observe.memory import MemoryCore
from palaver.templates.quote import line

from .options import as_json
from .output import print_json


class Waiting(Struct, frozen=True):
    """Something that waits for a review: its fields as JSON has them, and what approving and declining do.

    `approve` returns the id of the memory.
    """

    fields: dict[str, Any]
    approve: Callable[[], str]
    decline: Callable[[], object]

    def shown(self) -> str:
        """Return it as text for a terminal."""
        told = {name: line(str(value)) for name, value in self.fields.items()}
        if self.fields["kind"] == "preference":
            what, said = (
                "Preference",
                f"you said it in session {told['session_id']}, {told['path']} line {told['line']}",
            )
        else:
            what = "Golden rule"
            said = f"confidence {told['confidence']}, {told['successes']} successes, stored by {told['stored_by']}"
        return f"{told['id']}  {what} for {told['namespace']}: {told['content']}\n  Source: {said}"


@click.command()
@click.option("--approve", multiple=True, metavar="ID", help="Approve without asking; can be repeated.")
@click.option("--decline", multiple=True, metavar="ID", help="Decline without asking; can be repeated.")
@as_json
def review(*, approve: Sequence[str], decline: Sequence[str], as_json: bool) -> None:
    """Approve or decline what Palaver proposes: preferences you stated, and memories that proved themselves.

    An approved preference is stored; an approved proven memory becomes a golden rule. What you decline is never
    proposed again. At a terminal each proposal is shown with its source and asked about.
    """
    home = Home.find()
    home.check()
    with MemoryCore.open(home, Config.read(home.config).model) as core:
        waiting = waiting_in(core.store, core)
        if approve or decline:
            _decide(waiting, approve, decline, as_json=as_json)
        elif as_json:
            print_json({"waiting": [each.fields for each in waiting.values()]})
        elif not waiting:
            click.echo("Nothing waits for a review.")
        elif sys.stdin.isatty() and sys.stdout.isatty():
            _ask(list(waiting.values()))
        else:
            click.echo("\n".join(each.shown() for each in waiting.values()))
            click.echo("Decide with `palaver memories review --approve ID` or `--decline ID`.")


def waiting_in(store: Store, core: MemoryCore) -> dict[str, Waiting]:
    """Return what waits for a review, by id: preferences first."""
    found = [_preference(store, core, each) for each in preference_candidates(store)]
    found += [_proven(core, held) for held in core.feedback.approvable()]
    return {each.fields["id"]: each for each in found}


def _preference(store: Store, core: MemoryCore, candidate: PreferenceCandidate) -> Waiting:

    fields = preference_fields(candidate)
    return Waiting(fields, lambda: keep(core, candidate).id, lambda: decline(store, candidate))


def preference_fields(candidate: PreferenceCandidate) -> dict[str, Any]:
    """Return a stated preference as JSON has it."""
    memory = candidate.memory
    return {
        "id": candidate.id,
        "kind": "preference",
        "content": memory.content,
        "namespace": memory.namespace,
        "session_id": memory.session_id,
        "path": candidate.path,
        "line": candidate.line,
        "quote": memory.metadata["quote"],
    }


def _proven(core: MemoryCore, held: StoredMemory) -> Waiting:
    fields = {
        "id": held.id,
        "kind": "golden_rule",
        "content": held.memory.content,
        "namespace": held.memory.namespace,
        "confidence": held.stats.confidence,
        "successes": held.stats.successes,
        "stored_by": held.memory.source or held.memory.origin,
    }
    return Waiting(fields, lambda: core.feedback.approve(held.id).id, lambda: core.feedback.decline(held.id))


def _decide(waiting: dict[str, Waiting], approve: Sequence[str], decline: Sequence[str], *, as_json: bool) -> None:
    """Approve and decline by id; raises `InvalidInput` before anything is done if one does not wait."""
    if both := sorted({*approve} & {*decline}):
        raise click.UsageError(f"Both approved and declined: {', '.join(both)}.")
    for name in (*approve, *decline):
        if name not in waiting:
            raise InvalidInput(f"{name} is not waiting for a review", hint="Run `palaver memories review`.")
    approved = {name: waiting[name].approve() for name in approve}
    for name in decline:
        waiting[name].decline()
    if as_json:
        print_json({"approved": approved, "declined": list(decline)})
        return
    for name, memory in approved.items():
        click.echo(_approved(name, memory))
    for name in decline:
        click.echo(f"Declined: {name}. It will not be proposed again.")


def _approved(name: str, memory: str) -> str:
    return f"Approved: {memory} is a golden rule." if name == memory else f"Approved: {name} is stored as {memory}."


def _ask(waiting: Sequence[Waiting]) -> None:
    """Show each proposal and ask about it."""
    for number, each in enumerate(waiting, 1):
        click.echo(f"\n{number} of {len(waiting)}  {each.shown()}")
        answer = click.prompt("Keep, decline or skip?", type=click.Choice(["k", "d", "s"]), default="s")
        if answer == "k":
            click.echo(_approved(each.fields["id"], each.approve()))
        elif answer == "d":
            each.decline()
            click.echo("Declined. It will not be proposed again.")
