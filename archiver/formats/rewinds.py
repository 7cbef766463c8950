"""Detection of rewinds.

In a rewind, the user goes back in the conversation and continues from there, which abandons a range of lines. The value
of a `Fact.REWOUND` note is the number of the first abandoned line. If only the end of a transcript is read, that line
can precede the part that is read. The value is then empty.
"""

from msgspec import Struct, field

from ...core.conversation import Fact, Note


class PromptLines(Struct):
    """Line numbers of the prompts, for agents that record how many prompts the user undid."""

    _lines: list[int] = field(default_factory=list[int])

    def add(self, line: int) -> None:
        """Add the line number of a prompt."""
        self._lines.append(line)

    def take_back(self, line: int, count: int, *, partial: bool) -> list[Note]:
        """Return a rewind note for the last `count` prompts.

        If fewer prompts are known, return an empty list. If only a part of the transcript is read (`partial`), return a
        note with an empty value.
        """
        if not 0 < count <= len(self._lines):
            return [Note(line, Fact.REWOUND, "")] if partial and count else []
        first = self._lines[-count]
        del self._lines[-count:]
        return [Note(line, Fact.REWOUND, str(first))]


class PromptParents(Struct):
    """Parent records of prompts. Of two prompts with the same parent, the earlier prompt was abandoned.

    Only prompts indicate a rewind: parallel tool calls, hooks and progress also give a record several children.
    """

    _begun: bool = False
    """True after the first prompt. Its parent can precede the part of the transcript that is read."""
    _prompts: dict[str, int] = field(default_factory=dict[str, int])
    _records: set[str] = field(default_factory=set[str])

    def add_record(self, record: str) -> None:
        """Add the ID of a record. The IDs are needed if only a part of the transcript is read."""
        self._records.add(record)

    def add_prompt(self, parent: str, line: int, *, partial: bool) -> list[Note]:
        """Return a rewind note if the prompt replaces an earlier prompt."""
        begun, self._begun = self._begun, True
        if not parent:
            return []
        earlier = self._prompts.get(parent)
        if earlier is not None:
            return [Note(line, Fact.REWOUND, str(earlier))]
        self._prompts[parent] = line
        return [Note(line, Fact.REWOUND, "")] if partial and begun and parent not in self._records else []


class EntryTree(Struct):
    """Tree of a session's entries, for agents that record the ID of each entry's parent.

    The active branch is the branch with the last entry that has events.
    """

    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _lines: dict[str, int] = field(default_factory=dict[str, int])
    _previous: str = ""
    _last: str = ""

    def add(self, entry: str, parent: str, *, partial: bool) -> None:
        """Add an entry. An entry with an unknown parent becomes a child of the previous entry."""
        if entry:
            lost = parent and parent not in self._parents and not partial
            self._parents[entry] = self._previous if lost else parent
            self._previous = entry

    def mark_events(self, entry: str, line: int) -> None:
        """Mark an entry as having events."""
        if entry:
            self._lines[entry] = line
            self._last = entry

    def abandoned(self, *, partial: bool) -> list[Note]:
        """Return a note for each abandoned range of lines."""
        branch = self._active_branch()
        if partial and branch and branch[-1] != next(iter(self._parents)):
            return [Note(self._lines[self._last], Fact.REWOUND, "")]
        notes: list[Note] = []
        active, first = set(branch), 0
        for entry, line in self._lines.items():
            if entry not in active:
                first = first or line
            elif first:
                notes.append(Note(line, Fact.REWOUND, str(first)))
                first = 0
        return notes

    def _active_branch(self) -> list[str]:
        """Return the entries from the last entry with events back to the first known ancestor."""
        branch = dict[str, None]()
        entry = self._last
        while entry in self._parents and entry not in branch:
            branch[entry] = None
            entry = self._parents[entry]
        return list(branch)
