"""Fabric tool that condenses old memories of a layer into one summary."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from ...core.amount import many
from ...core.clock import show_day
from ...core.conversation import Milliseconds
from ...core.memory import Memory, Relation, StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter
from ...core.memory_types import Family
from ...core.origin import Origin, least
from ...templates.memory_changes import undo_command
from ...templates.quote import brief
from ..delete_question import delete_question
from ..memory_uuid import uuid_of
from ..toolset import WHOLE, ToolReply
from .fabric_context import FabricContext
from .fabric_data import SummarizeReply
from .fabric_parameters import Days, ProjectPath, SessionId, SummaryOptions

_DAY: Final = 86_400_000
_MAX: Final = 1_000
"""Maximum number of memories that one call condenses."""
_SNIPPETS: Final = 5
_SNIPPET: Final = 40
"""Maximum tokens that a summary quotes from one memory."""


def summarize(
    fabric: FabricContext,
    session_id: SessionId,
    options: Annotated[SummaryOptions, Field(description="Length and selection")],
    layer: Annotated[Literal[2, 3], WHOLE, Field(description="2 project, 3 all projects")] = 2,
    older_than_days: Annotated[Days, Field(alias="olderThanDays")] = 30,
    project_path: ProjectPath = None,
) -> ToolReply:
    """Condense old memories of a layer into one summary, and archive them. The summary links to them.

    Pinned memories, golden rules and memories in the user's own words stay.
    """
    fabric.enter(session_id)
    folder, at = fabric.folder(project_path), fabric.clock()
    old = _old(fabric, options, layer, older_than_days, folder)
    if not old:
        return fabric.reply(SummarizeReply("", 0, "Nothing to summarize.", layer))
    memory = Memory(
        _text(old, options.target_tokens, at),
        "summary",
        title=f"Summary of {len(old)} memories",
        namespace=fabric.target(layer, folder),
        project=project_path or "",
        tags=("summary",),
        metadata={"summarized": len(old)},
        source="system_auto",
        origin=least([each.memory.origin for each in old]),
        pinned=True,
    )
    core = fabric.core
    # If the process stops here, the summary and its memories both exist, so nothing is lost.
    summary = core.remember(memory, replaces="").stored
    for each in old:
        core.graph.relate(summary.id, each.id, Relation.RELATES_TO, reason="summarized")
    core.forget([each.id for each in old], reason=f"summarized in {summary.id}")
    undo = undo_command([each.id for each in old])
    reply = SummarizeReply(uuid_of(summary), len(old), summary.memory.content, layer, undo)
    return fabric.reply(reply, 20_000, quotes=True)


def summarize_question(
    fabric: FabricContext,
    *,
    options: SummaryOptions,
    layer: int,
    older_than_days: float,
    project_path: str | None,
    **_others: object,
) -> str:
    """Return the question to the user before `summarize`. It lists the memories to archive."""
    old = _old(fabric, options, layer, older_than_days, fabric.folder(project_path))
    items = [f"{each.id} [{each.memory.namespace}] {each.memory.title or each.memory.content}" for each in old]
    return delete_question(f"Replace {many(len(old), 'memory', 'memories')} with a summary", items, "You can undo it.")


def _old(
    fabric: FabricContext, options: SummaryOptions, layer: int, older_than_days: float, folder: Path
) -> list[StoredMemory]:
    """Return the memories to condense, oldest first."""
    at = fabric.clock()
    wanted = MemoryFilter(
        namespaces=fabric.namespaces(layer, folder),
        types=tuple(options.focus_types or ()),
        states=ACTIVE,
        pinned=False,
        protected=False,
        created_before=at - int(older_than_days * _DAY),
        valid_at=at,
    )
    return [each for each in fabric.core.page(wanted, descending=False, limit=_MAX) if _is_chosen(each, options)]


def _is_chosen(stored: StoredMemory, options: SummaryOptions) -> bool:
    excluded = {Family.SUMMARY}
    if not options.include_patterns:
        excluded.add(Family.PATTERN)
    if not options.include_decisions:
        excluded.add(Family.DECISION)
    return stored.family not in excluded and stored.memory.origin is not Origin.HUMAN


def _text(old: Sequence[StoredMemory], tokens: int, at: Milliseconds) -> str:
    """Return a summary of at most `tokens`: numbers of memories by type, and the beginnings of the oldest memories."""
    counts = Counter(each.memory.type for each in old)
    numbers = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    span = f"{show_day(old[0].created)} to {show_day(old[-1].created)}"
    first = f"{len(old)} memories of {span}, archived on {show_day(at)}: {numbers}."
    snippets = [f"{each.memory.type}: {brief(each.memory.content, _SNIPPET)}" for each in old[:_SNIPPETS]]
    return brief(f"{first} First ones: {'; '.join(snippets)}", tokens)
