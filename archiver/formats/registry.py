"""Registry of transcript formats. The modules of a format are imported on first use.

The format of `some-agent`, which `core/agent_names.py` lists, is `FORMAT` in `some_agent.py`.
"""

from functools import cache
from importlib import import_module
from itertools import islice
from typing import Final, cast

from ...core.agent_names import AGENTS
from ..lines import head_records
from .transcript_format import ContainerFormat, TranscriptFormat

_FIRST: Final = 5
"""Number of records that are decoded first. More records are decoded only if these do not identify the format."""


@cache
def by_agent(agent: str) -> TranscriptFormat:
    """Return the format of an agent. Raises `ValueError` for an unknown agent."""
    name = AGENTS[AGENTS.index(agent)].replace("-", "_")
    return cast("TranscriptFormat", import_module(f".{name}", __package__).FORMAT)


@cache
def all_formats() -> tuple[TranscriptFormat, ...]:
    """Return every format, in the order of `AGENTS`."""
    return tuple(map(by_agent, AGENTS))


@cache
def container_formats() -> tuple[ContainerFormat, ...]:
    """Return the formats that support containers."""
    return tuple(known for known in all_formats() if isinstance(known, ContainerFormat))


def recognise(head: bytes, name: str = "") -> TranscriptFormat | None:
    """Return the format of a file that begins with these bytes, or None for an unknown format.

    If no record is readable, because the file is empty or damaged, the format is recognised by the file name.
    """
    records = head_records(head)
    found = list(islice(records, _FIRST))
    if not found:
        return next((known for known in all_formats() if known.matches_name(name)), None)
    known = next((known for known in all_formats() if known.recognises(found)), None)
    if known is None:
        found += records
        known = next((known for known in all_formats() if known.recognises(found)), None)
    return known
