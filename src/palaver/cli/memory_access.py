"""Access to memories for commands: open the memories, check types, and print a memory."""

from collections.abc import Sequence

import click

from palaver.archiver.reading.secrets_report import kinds_of
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.core.memory import MemoryState, StoredMemory
from palaver.core.memory_filter import MemoryFilter
from palaver.core.memory_types import known_type
from palaver.observe.memory import MemoryCore
from palaver.templates.json_output import to_json
from palaver.templates.quote import line

from .demo import refuse_demo_only
from .language_model import judge_factory
from .output import print_json


def memory_core(*, make: bool = False) -> MemoryCore:
    """Open the memories of this home. With `make`, create the archive if it does not exist.

    Raises:
        StoreMissing: No archive exists.
    """
    home = Home.find()
    if not make:
        refuse_demo_only(home, "memories list")
        home.check()
    config = Config.read(home.config)
    return MemoryCore.open(home, config.model, judge_factory(home, config))


def types_of(core: MemoryCore, names: Sequence[str]) -> tuple[str, ...]:
    """Return the stored spelling of memory types.

    Raises:
        InvalidMemoryType: A type is unknown.
    """
    known = core.count_by("type", MemoryFilter(states=tuple(MemoryState)))
    return tuple(known_type(name, known) for name in names)


def print_memory(stored: StoredMemory, message: str, *, as_json: bool, redacted: bool, **more: str) -> None:
    """Print a message about a memory, or the memory as JSON with the additional fields `more`.

    With `redacted`, also report the kinds of redacted secrets.
    """
    if as_json:
        print_json({**to_json(stored), **more, **(redacted_kinds(stored) if redacted else {})})
    else:
        click.echo(line(message))
        if redacted:
            print_redacted(stored)


def redacted_kinds(stored: StoredMemory) -> dict[str, list[str]]:
    """Return a field that lists the kinds of secrets redacted in a memory, or no field if nothing was redacted."""
    kinds = kinds_of(stored.memory)
    return {"secrets_removed": kinds} if kinds else {}


def print_redacted(stored: StoredMemory) -> None:
    """Print the kinds of secrets redacted in a memory, if any."""
    for kinds in redacted_kinds(stored).values():
        click.echo(f"Redacted secrets, which are not stored: {', '.join(kinds)}.")
