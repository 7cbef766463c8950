"""Check of agent names, which suggests similar names for an unknown name."""

from collections.abc import Iterable, Sequence
from typing import Final

from ...archiver.formats.registry import AGENTS
from ...core.errors import InvalidInput
from ...core.text import similar_names
from .tokenizer import label

_SIMILARITY: Final = 50
"""Minimum similarity of a suggested name, 0 to 100."""


def check_agents(names: Sequence[str], archived: Iterable[str]) -> None:
    """Check that each name is that of a supported agent, or of an agent with entries.

    Raises:
        InvalidInput: A name belongs to no such agent. The hint names the most similar agent.
    """
    known = dict.fromkeys((*AGENTS, *archived))
    for name in names:
        if label(name) not in known:
            near = [each for each in known if label(name) in each]
            near = near or similar_names(label(name), known, least=_SIMILARITY)
            question = f"Did you mean {' or '.join(near)}? " if near else ""
            raise InvalidInput(f"Unknown agent: {name}", hint=f"{question}Use one of: {', '.join(known)}.")
