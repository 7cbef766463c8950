"""`palaver memories review`: approve or decline proposed memories and golden rules."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from msgspec import Struct

from palaver.core.amount import many
from palaver.core.config import Config
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.core.memory import StoredMemory
from palaver.core.origin import Origin
from palaver.observe.extraction.preferences import EXCHANGE, PreferenceCandidate, keep, preference_candidates
from palaver.observe.extraction.preferences import decline as decline_preference
from palaver.observe.memory import MemoryCore
from palaver.templates.quote import line

from .options import as_json
from .output import print_json

_KEYS: Final = {
    "a": ("approve", "store the preference, or make the memory a golden rule"),
    "d": ("decline", "never propose it again"),
    "s": ("skip", "decide later; Enter does the same"),
    "q": ("quit", "stop here; earlier decisions stay"),
    "?": ("help", "show this list"),
}
"""Keys that the user can press, each with the name and the description of its action."""


class ReviewItem(Struct, frozen=True):
    """Proposal to review: its JSON fields, and functions that approve or decline it. `approve` returns a memory ID."""

    fields: dict[str, Any]
    approve: Callable[[], str]
    decline: Callable[[], object]

    def as_text(self) -> str:
        """Return the proposal as terminal text."""
        shown = {name: line(str(value)) for name, value in self.fields.items()}
        if self.fields["kind"] == "preference":
            typed = self.fields["origin"] == Origin.HUMAN
            label, author = ("Preference", "your words") if typed else ("Note", "a note")
            source = f"{author} in session {shown['session_id']}, {shown['path']} line {shown['line']}"
            source += f" ({shown['exchange']})\n  Trust: {shown['trust']}"
            source += f"{', because you typed it' if typed else ''}. It {shown['reason']}."
        else:
            label = "Golden rule"
            source = f"confidence {shown['confidence']}, {shown['successes']} successes, stored by {shown['stored_by']}"
        return f"{shown['id']}  {label} for {shown['namespace']}: {shown['content']}\n  Source: {source}"


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
    home = Home.find()
    home.check()
    with MemoryCore.open(home, Config.read(home.config).model) as core:
        proposals = _proposals(core)
        if approve or decline:
            _decide(proposals, approve, decline, as_json=as_json)
        elif as_json:
            print_json({"waiting": [each.fields for each in proposals.values()]})
        elif not proposals:
            click.echo(
                "No proposals to review. Run `palaver archive` to find preferences that you stated since the last run."
            )
        elif sys.stdin.isatty() and sys.stdout.isatty():
            _ask(list(proposals.values()))
        else:
            click.echo("\n".join(each.as_text() for each in proposals.values()))
            click.echo("To decide, run `palaver memories review` with --approve ID or --decline ID.")


def preference_fields(candidate: PreferenceCandidate) -> dict[str, Any]:
    """Return the JSON fields of a preference stated by the user."""
    memory = candidate.memory
    return {
        "id": candidate.id,
        "kind": "preference",
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


def _proposals(core: MemoryCore) -> dict[str, ReviewItem]:
    """Return the proposals by ID, preferences first."""
    found = [_preference(core, each) for each in preference_candidates(core.store)]
    found += [_proven(core, stored) for stored in core.feedback.approvable()]
    return {each.fields["id"]: each for each in found}


def _preference(core: MemoryCore, candidate: PreferenceCandidate) -> ReviewItem:
    return ReviewItem(
        preference_fields(candidate),
        lambda: keep(core, candidate).id,
        lambda: decline_preference(core.store, candidate),
    )


def _proven(core: MemoryCore, stored: StoredMemory) -> ReviewItem:
    fields = {
        "id": stored.id,
        "kind": "golden_rule",
        "content": stored.memory.content,
        "namespace": stored.memory.namespace,
        "confidence": stored.stats.confidence,
        "successes": stored.stats.successes,
        "stored_by": stored.memory.source or stored.memory.origin,
    }
    return ReviewItem(fields, lambda: core.feedback.approve(stored.id).id, lambda: core.feedback.decline(stored.id))


def _decide(proposals: dict[str, ReviewItem], approve: Sequence[str], decline: Sequence[str], *, as_json: bool) -> None:
    """Approve and decline proposals by ID.

    Raises:
        InvalidInput: An ID is unknown. No proposal has been changed.
    """
    if both := sorted({*approve} & {*decline}):
        raise click.UsageError(f"The same ID cannot be approved and declined: {', '.join(both)}.")
    for name in (*approve, *decline):
        if name not in proposals:
            raise InvalidInput(
                f"{name} is not a proposal to review", hint="Run `palaver memories review` to list proposals."
            )
    approved = {name: proposals[name].approve() for name in approve}
    for name in decline:
        proposals[name].decline()
    if as_json:
        print_json({"approved": approved, "declined": list(decline)})
        return
    for name, memory in approved.items():
        click.echo(_approved(name, memory))
    for name in decline:
        click.echo(f"Declined: {name}. It will not be proposed again.")


def _approved(name: str, memory: str) -> str:
    return f"Approved: {memory} is a golden rule." if name == memory else f"Approved: {name} is stored as {memory}."


def _ask(proposals: Sequence[ReviewItem]) -> None:
    """Show each proposal and ask for a decision, until all are decided or the user quits."""
    for number, each in enumerate(proposals, 1):
        click.echo(f"\n{number} of {len(proposals)}  {each.as_text()}")
        match _decision():
            case "a":
                click.echo(_approved(each.fields["id"], each.approve()))
            case "d":
                each.decline()
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
