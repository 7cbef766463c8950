"""Memories: the list, one memory with its history, the review of proposals, and edits."""

from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..core.conversation import Origin
from ..core.errors import InvalidInput, MemoryNotFound
from ..core.memory import (
    STORED,
    Edge,
    EventKind,
    MemoryFilter,
    MemoryRevision,
    MemoryState,
    Relation,
    StoredMemory,
    state_label,
)
from ..observe.extraction.preferences import DECLINED
from ..observe.memory import MemoryCore
from ..observe.mnemonics import forget_with_files
from .gate import BASE
from .pages import archive_of, form_of, page_number, redirect, render, route
from .search_page import evidence_address

_ROWS: Final = 50
"""Memories on one page."""
_PROPOSALS: Final = 20
"""Maximum number of proposals on the page."""
_SEARCHED: Final = 5_000
"""Maximum number of exchanges that are searched for proposals without a request. A thousand take 0.7 s."""
_STATES: Final = {"": STORED, "forgotten": (MemoryState.ARCHIVED,), "all": tuple(MemoryState)}
"""States that the parameter `state` of the address selects."""


class LinkedMemory(Struct, frozen=True):
    """Memory at the other end of an edge, and how the edge relates it to this memory."""

    verb: str
    id: str
    content: str
    reason: str
    disagrees: bool


def memories(request: Request) -> Response:
    """Show a page of the memories. Proposals are a page of their own, because all prompts are searched for them."""
    core = archive_of(request).memories
    chosen = {name: value for name in ("type", "namespace", "state") if (value := request.query_params.get(name, ""))}
    filters = MemoryFilter(
        types=(chosen["type"],) if "type" in chosen else (),
        namespaces=(chosen["namespace"],) if "namespace" in chosen else (),
        states=_STATES.get(chosen.get("state", ""), STORED),
    )
    page = page_number(request)
    total, first = core.count(filters), (page - 1) * _ROWS
    all_states = MemoryFilter(states=tuple(MemoryState))
    return render(
        request,
        "memories.html.j2",
        reviews=core.store.exchanges.count() <= _SEARCHED,
        rows=core.page(filters, limit=_ROWS, offset=first),
        state_label=state_label,
        total=total,
        chosen=chosen,
        types=sorted(core.count_by("type", all_states)),
        namespaces=sorted(core.count_by("namespace", all_states)),
        newer=_address(chosen, page - 1) if page > 1 else "",
        older=_address(chosen, page + 1) if first + _ROWS < total else "",
    )


def review(request: Request) -> Response:
    """Show the proposals that wait for a decision or, as a part of a page if htmx asks for it, their number."""
    archive, query = archive_of(request), request.query_params
    proposals = archive.review.proposals()
    return render(
        request,
        "review_part.html.j2" if "hx-request" in request.headers else "review.html.j2",
        proposals=proposals if "all" in query else proposals[:_PROPOSALS],
        total=len(proposals),
        approved=_memory_with(archive.memories, query.get("approved", "")),
        declined="declined" in query,
    )


def memory(request: Request) -> Response:
    """Show a memory with its relations and history."""
    core = archive_of(request).memories
    stored = core.get(request.path_params["memory"])
    events = core.history(stored.id)
    line = stored.memory.metadata.get("line")
    session = stored.memory.session_id
    is_archived = bool(session) and bool(core.store.sessions.beginning_with(session))
    return render(
        request,
        "memory.html.j2",
        stored=stored,
        state=state_label(stored.state),
        is_forgotten=stored.state is MemoryState.ARCHIVED,
        is_declined=any(event.kind is EventKind.ARCHIVED and event.context == DECLINED for event in events[:1]),
        links=_links(core, stored),
        events=events,
        state_label=state_label,
        evidence=evidence_address("", session, line) if is_archived and isinstance(line, int) else "",
        session=f"{BASE}/sessions/{quote(session)}" if is_archived else "",
    )


def decide(request: Request) -> Response:
    """Approve or decline a proposal, and return to the list."""
    form, proposals = form_of(request), archive_of(request).review
    public = request.path_params["proposal"]
    if form.get("decision") == "approve":
        stored = proposals.approve(public, form.get("content", "").strip())
        return redirect(f"/memories/review?{urlencode({'approved': stored.id})}")
    if form.get("decision") == "decline":
        proposals.decline(public)
        return redirect("/memories/review?declined=1")
    raise InvalidInput("No decision was made", hint="Press Approve or Decline.")


def edit(request: Request) -> Response:
    """Store an edited wording of a memory."""
    core, public = archive_of(request).memories, request.path_params["memory"]
    content = form_of(request).get("content", "").strip()
    if content and content != core.get(public).memory.content.strip():
        core.revise(public, MemoryRevision(content=content, origin=Origin.HUMAN), force=True)
    return redirect(f"/memories/{public}")


def forget(request: Request) -> Response:
    """Forget a memory. Its page then offers to restore it."""
    core, public = archive_of(request).memories, request.path_params["memory"]
    forget_with_files(core, [public], force=True, reason="viewer")
    return redirect(f"/memories/{public}")


def undo(request: Request) -> Response:
    """Restore a forgotten memory, or undo its last edit."""
    core, public = archive_of(request).memories, request.path_params["memory"]
    core.undo([public])
    return redirect(f"/memories/{public}")


def _memory_with(core: MemoryCore, public: str) -> StoredMemory | None:
    """Return the memory with an ID, or None if it was deleted."""
    try:
        return core.get(public) if public else None
    except MemoryNotFound:
        return None


def _links(core: MemoryCore, stored: StoredMemory) -> list[LinkedMemory]:
    """Return the memories that edges connect with a memory, disagreements first."""
    edges = core.graph.edges_of(stored)
    keys = {edge.target if edge.source == stored.key else edge.source for edge in edges}
    linked = core.store.memories.load(sorted(keys))
    links = list[LinkedMemory]()
    for edge in edges:
        linked_memory = linked.get(edge.target if edge.source == stored.key else edge.source)
        if linked_memory is not None:
            verb = _verb(edge, outgoing=edge.source == stored.key)
            links.append(
                LinkedMemory(verb, linked_memory.id, linked_memory.memory.content, edge.reason, edge.disagrees)
            )
    return sorted(links, key=lambda link: not link.disagrees)


def _verb(edge: Edge, *, outgoing: bool) -> str:
    verbs = {
        Relation.RELATES_TO: ("Related to", "Related to"),
        Relation.SUPERSEDES: ("Supersedes", "Superseded by"),
        Relation.CAUSED_BY: ("Caused by", "Led to"),
        Relation.CONTRADICTS: ("Contradicts", "Contradicts"),
    }
    verb = verbs[edge.relation][not outgoing]
    return f"Perhaps {verb.lower()}" if edge.proposed else verb


def _address(chosen: dict[str, str], page: int) -> str:
    return f"{BASE}/memories?{urlencode({**chosen, 'page': page})}"


routes: Final[list[BaseRoute]] = [
    route("/memories", memories),
    route("/memories/review", review, slow=True),
    route("/memories/{memory}", memory),
    route("/memories/{memory}/edit", edit, post=True),
    route("/memories/{memory}/forget", forget, post=True),
    route("/memories/{memory}/undo", undo, post=True),
    route("/proposals/{proposal}", decide, post=True, slow=True),
]
