"""Branches: places where a person went back in the conversation and asked something else."""

from msgspec import Struct, field

from ....core.conversation import Fact, Note, Turn
from ...files.lines import Record
from ..json_values import string


class Rewinds(Struct):
    """Two prompts that follow the same record: the earlier one was left behind, with everything up to the later.

    Nothing else that forks is a rewind: parallel tool calls, hooks and progress give one record several children too.
    """

    partial: bool = False
    """Whether reading began in the middle of the file, so that a record may be unknown and yet exist."""
    _begun: bool = False
    """Whether a prompt was seen: what the first one follows lies before the place where reading began."""
    _followed: dict[str, int] = field(default_factory=dict[str, int])
    _seen: set[str] = field(default_factory=set[str])

    def see(self, record: Record) -> None:
        """Remember that a record exists."""
        if self.partial:
            self._seen.add(string(record.get("uuid")))

    def prompt(self, record: Record, line: int) -> list[Turn | Note]:
        """The note that a prompt gives when it is asked in place of an earlier one."""
        parent = string(record.get("parentUuid"))
        begun, self._begun = self._begun, True
        if not parent:
            return []
        earlier = self._followed.get(parent)
        if earlier is not None:
            return [Note(line, Fact.REWOUND, str(earlier))]
        unknown = self.partial and begun and parent not in self._seen
        self._followed[parent] = line
        return [Note(line, Fact.REWOUND, "")] if unknown else []
