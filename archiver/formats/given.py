"""Given: what one record gives, and what becomes of its line by that."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...core.conversation import Note, Skipped, Turn
from ..files.clipping import clean, one_line
from ..files.lines import Line, Record

Given: TypeAlias = "Sequence[Turn | Note] | str"
"""Turns and notes, or the reason why nothing. Empty when the record is held back."""

BOOKKEEPING = "bookkeeping"
"""State of the agent's program."""
CONTEXT = "context"
"""What the program told the model and the person did not see."""
COPIED_HEADER = "copied-header"
"""The header of another session, which a fork brought along."""
EMPTY = "empty"
REPEATED = "repeated"
"""Something that another line tells as well, or better."""


def of_line(line: Line, given: Sequence[Given]) -> Sequence[Turn | Note | Skipped]:
    """What the records of one line give together, else the first reason why not; nothing where all are held back."""
    events = [event for each in given if not isinstance(each, str) for event in each]
    reason = next((each for each in given if isinstance(each, str)), "")
    return events or ([Skipped(line.number, reason)] if reason else [])


def of_records(
    line: Line, found: Sequence[Record] | str, give: Callable[[Record, Line], Given]
) -> Sequence[Turn | Note | Skipped]:
    """What the records found on a line give together; where none was found, the reason why."""
    return of_line(line, [found] if isinstance(found, str) else [give(record, line) for record in found])


def unknown(kind: str) -> str:
    """The reason for passing over a record of a kind that no reader knows yet."""
    return f"unknown-type:{one_line(clean(kind))}"
