"""Hook for the start of a session: memories and the digest of the project's past sessions."""

from itertools import chain

from ...core.injection import HookEvent
from ...core.tokens import count
from ...observe.memory import MemoryCore, SessionContext
from ...templates.render import Renderer
from .hook_answer import BUDGETS, HookAnswer, HookPlace
from .hook_call import HookCall


def session_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return the memories that `palaver context` prints, and the lines about past sessions that probably matter.

    The calling session is not one of the past sessions. After a compaction it can be in the archive, but its summary is
    already in the agent's context.
    """
    renderer, text = Renderer(place.home.templates, at_shell=True), ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer.memory_context(sections, chosen.left_out, chosen.contradictions, chosen.digest)
        return count(text)

    with MemoryCore.open(place.home, place.config.model) as core:
        chosen = core.contexts.select(
            cost,
            place.namespace,
            budget=BUDGETS[HookEvent.SESSION_START],
            likely_only=True,
            without=call.session_id,
        )
    if chosen.is_empty:
        return HookAnswer()
    memories = (stored.id for section in chosen.sections for stored in section.memories)
    lines = (line.id for section in chosen.digest for line in section.lines)
    return HookAnswer(text, tuple(chain(memories, lines)))
