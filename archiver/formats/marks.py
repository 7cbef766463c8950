"""Marks: what everything that one record says has in common, and what is known of the session so far."""

import hashlib
import re

from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, Speaker, Turn
from ..files.clipping import clean, clip
from .actions import INPUT_LIMIT

# Programs number what they say as well (`call_1`, `e7`), and such a number stands in every session.
_UNIQUE = re.compile(r"[0-9A-Za-z]{16,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class Mark(Struct, frozen=True):
    """Where a record stands, when it was written, and its id."""

    line: int
    at: Milliseconds | None = None
    record: str = ""

    def turn(
        self,
        speaker: Speaker,
        kind: Kind,
        text: str,
        *,
        group: str = "",
        tool: str = "",
        call: str = "",
        failed: bool = False,
        reads: tuple[str, ...] = (),
        writes: tuple[str, ...] = (),
    ) -> Turn:
        """A turn of this record."""
        return Turn(self.line, speaker, kind, text, self.at, self.record, group, tool, call, failed, reads, writes)

    def injected(self, text: str, *, shorten: bool, failed: bool = False) -> Turn:
        """What the agent's program put into the conversation."""
        text = clip(clean(text), INPUT_LIMIT if shorten else None)
        return self.turn(Speaker.HOST, Kind.INJECTED, text, failed=failed)


def identity(named: str, data: bytes) -> str:
    """The id of a record that was read from a line: its own where that can be no other's, else one of its bytes.

    Either way, a copy of the line in another file has the same.
    """
    return named if _UNIQUE.search(named) else hashlib.blake2b(data, digest_size=12).hexdigest()


class Facts(Struct):
    """What notes have told already."""

    session: Session
    _known: dict[Fact, str] = field(default_factory=dict[Fact, str])

    def learn(self, line: int, fact: Fact, value: str, *, rank: int = 0) -> list[Note]:
        """A note, unless it says nothing new."""
        value = clean(value)
        if not value or self._known.get(fact) == value:
            return []
        self._known[fact] = value
        return [Note(line, fact, value, rank)]

    def forget(self, *facts: Fact) -> None:
        """Let these be told again."""
        for fact in facts:
            self._known.pop(fact, None)

    def place(self, line: int) -> list[Note]:
        """Where an exchange begins: the folder and the branch, as they are known on its first line."""
        here = {
            Fact.CWD: self._known.get(Fact.CWD, self.session.cwd),
            Fact.BRANCH: self._known.get(Fact.BRANCH, self.session.branch),
        }
        return [Note(line, fact, value) for fact, value in here.items() if value]
