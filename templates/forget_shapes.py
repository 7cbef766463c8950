"""What is forgotten, as the JSON that is promised to stay."""

from typing import TypedDict

from ..core.clock import show_minute
from ..core.deletion import DeletionPreview, DeletionResult
from .quote import clean


class DoomedSessionJson(TypedDict):
    """A session of which something goes."""

    session_id: str
    agent: str
    project: str
    title: str
    exchanges: int
    whole: bool


class DoomedCopyJson(TypedDict):
    """A file of the archive that goes or loses lines, and where the agent has its own."""

    archived: str
    path: str
    lines: int
    size: int
    whole: bool


class WidenedJson(TypedDict):
    """Lines that go because an exchange goes as a whole, of which a target named only a part."""

    target: str
    archived: str
    start_line: int
    end_line: int


class PreviewJson(TypedDict):
    """Exactly what would go."""

    token: str
    erase: bool
    sessions: list[DoomedSessionJson]
    exchanges: int
    observations: int
    memories: list[str]
    protected: list[str]
    copies: list[DoomedCopyJson]
    shared: int
    sent: int
    widened: list[WidenedJson]
    files: list[str]
    unread: list[str]
    kept: int


class ProofJson(TypedDict):
    """How it was verified."""

    holds: bool
    samples: int
    files: int
    size: int
    searches: int
    found: list[str]
    hits: list[str]
    unread: list[str]
    uncleaned: list[str]
    problems: list[str]


class OutcomeJson(TypedDict):
    """What became of it."""

    done: bool
    number: int | None
    until: str | None
    removed: PreviewJson
    proof: ProofJson | None
    outside: list[str]
    left: list[str]


def preview_json(preview: DeletionPreview) -> PreviewJson:
    """A preview as JSON."""
    return PreviewJson(
        token=preview.token,
        erase=preview.erase,
        sessions=[
            DoomedSessionJson(
                session_id=clean(each.session_id),
                agent=each.agent,
                project=clean(each.project),
                title=clean(each.title),
                exchanges=each.exchanges,
                whole=each.whole,
            )
            for each in preview.sessions
        ],
        exchanges=preview.exchanges,
        observations=preview.observations,
        memories=[held.id for held in preview.memories],
        protected=[held.id for held in preview.protected],
        copies=[
            DoomedCopyJson(
                archived=clean(copy.archived),
                path=clean(str(copy.path)),
                lines=copy.lines,
                size=copy.size,
                whole=copy.whole,
            )
            for copy in preview.copies
        ],
        shared=preview.shared,
        sent=preview.sent,
        widened=[
            WidenedJson(
                target=clean(each.target),
                archived=clean(each.archived),
                start_line=each.start_line,
                end_line=each.end_line,
            )
            for each in preview.widened
        ],
        files=[clean(file.path) for file in preview.files],
        unread=[clean(name) for name in preview.unread],
        kept=preview.kept,
    )


def outcome_json(outcome: DeletionResult) -> OutcomeJson:
    """What was done as JSON. `outside` are the agents' own files, which stay."""
    proof = outcome.proof
    return OutcomeJson(
        done=True,
        number=outcome.number,
        until=show_minute(outcome.until) if outcome.until is not None else None,
        removed=preview_json(outcome.preview),
        proof=None
        if proof is None
        else ProofJson(
            holds=proof.holds,
            samples=proof.samples,
            files=proof.files,
            size=proof.size,
            searches=proof.searches,
            found=proof.found,
            hits=proof.hits,
            unread=proof.unread,
            uncleaned=proof.uncleaned,
            problems=[clean(each) for each in proof.problems],
        ),
        outside=[clean(str(path)) for path in outcome.outside],
        left=list(map(clean, outcome.left)),
    )
