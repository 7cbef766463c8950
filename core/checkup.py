"""What a look at the archive found: the values behind `doctor`, `fsck` and `rebuild`."""

from pathlib import Path
from typing import Final

from msgspec import Struct, field

from .amount import many

RESTORE: Final = (
    "Memories or observations that were stored last may be gone, as after palaver.db-wal was deleted or damaged. "
    "Compare with a file in backups/, run `palaver archive`, then `palaver fsck --repair`: it stores memories again "
    "that can be read in a damaged palaver.db-wal, and takes the database as it is."
)
"""Remedy for missing changes."""


class Finding(Struct, frozen=True):
    """Something that is not as it should be: in which part, what it is, and the one thing to do about it.

    `repaired` says that it was so and is no longer; `remedy` then tells what comes next, if anything does.
    """

    part: str
    problem: str
    remedy: str
    repaired: bool = False


class Checkup(Struct, frozen=True):
    """What `fsck` compared, by name and number, how a part is that is no fault of it, and all that it found."""

    home: Path
    compared: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong any more."""
        return all(finding.repaired for finding in self.findings)


class Diagnosis(Struct, frozen=True):
    """How everything is, part by part in a few words, and what is not well."""

    home: Path
    facts: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to do."""
        return not self.findings


class Rebuilt(Struct, frozen=True):
    """What was made anew: an index of so many entries and vectors and, from the copies, what they say.

    `reread` copies were known and read again, `recovered` ones had no row; `problems` are copies that stay unread.
    """

    generation: str
    entries: int
    vectors: int
    reread: int = 0
    recovered: int = 0
    problems: list[Finding] = field(default_factory=list[Finding])


def missing_changes(count: int) -> str:
    """Say how many acknowledged changes the database lacks."""
    return f"{many(count, 'acknowledged change')} {'is' if count == 1 else 'are'} missing from the database"
