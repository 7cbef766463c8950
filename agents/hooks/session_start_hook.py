"""Hook for the start of a session: approved rules, and what is open from the last session in the folder."""

from itertools import chain
from pathlib import Path
from typing import Final

from ...core.digest import DigestLine, DigestSection
from ...core.tokens import count
from ...observe.memory import MemoryCore, SessionContext
from ...observe.memory.last_session import last_session
from ...templates.render import Renderer
from .hook_answer import HookAnswer, HookPlace
from .hook_call import HookCall

LAST_TITLE: Final = "Last Session"
_RULES: Final = 150
"""Maximum tokens of the approved rules, in addition to those of the page without them."""


def session_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return the memories that the user approved, and the open items of the last session in the folder.

    The calling session is not the last session. After a compaction it can be in the archive, but its card is already
    in the agent's context.
    """
    renderer, text = Renderer(place.home.templates, at_shell=True), ""
    last = last_session(place.store, place.namespace, Path(call.cwd), call.session_id, place.at)

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer.memory_context(sections, chosen.left_out, chosen.contradictions, _digest(last))
        return sum(count(stored.memory.content) for _, memories in sections for stored in memories)

    with MemoryCore.open(place.home, place.config.model) as core:
        chosen = core.contexts.select(cost, place.namespace, budget=_RULES, past=False)
    if chosen.is_empty and last is None:
        return HookAnswer()
    memories = (stored.id for section in chosen.sections for stored in section.memories)
    return HookAnswer(text, tuple(chain(memories, [last.id] if last else [])))


def _digest(last: DigestLine | None) -> tuple[DigestSection, ...]:
    return (DigestSection(LAST_TITLE, (last,)),) if last else ()
