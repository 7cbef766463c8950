"""Hook for the start of a session: memories and the digest of the project's past sessions."""

from itertools import chain
from typing import Final

from ...core.injection import HookEvent
from ...core.tokens import count
from ...observe.memory import MemoryCore, SessionContext
from ...observe.memory.project_digest import DECISIONS_TITLE
from ...templates.render import Renderer
from .hook_answer import BUDGETS, HookAnswer, HookPlace
from .hook_call import HookCall

OMITTED: Final = frozenset({DECISIONS_TITLE})
"""Titles of the sections that are not injected. See bench/RESULTS.md, "Injection"."""


def session_text(call: HookCall, place: HookPlace) -> HookAnswer:  # noqa: ARG001 - see Selector
    """Return the context of a new session, as `palaver context` prints it, without the omitted sections."""
    return context_text(place, OMITTED)


def context_text(place: HookPlace, omitted: frozenset[str]) -> HookAnswer:
    """Return the context of a new session without the sections of these titles."""
    renderer, text = Renderer(place.home.templates, at_shell=True), ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        digest = [section for section in chosen.digest if section.title not in omitted]
        text = renderer.memory_context(sections, chosen.left_out, chosen.contradictions, digest)
        return count(text)

    with MemoryCore.open(place.home, place.config.model) as core:
        chosen = core.contexts.select(cost, place.namespace, "", BUDGETS[HookEvent.SESSION_START])
    digest = [section for section in chosen.digest if section.title not in omitted]
    if not (chosen.sections or digest):
        return HookAnswer()
    memories = (stored.id for section in chosen.sections for stored in section.memories)
    lines = (line.id for section in digest for line in section.lines)
    return HookAnswer(text, tuple(chain(memories, lines)))
