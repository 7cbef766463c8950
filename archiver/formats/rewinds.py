"""Rewinds: a user goes back in the conversation and continues from there, which abandons a stretch of lines.

A `Fact.REWOUND` note has the first abandoned line as its value, or nothing if that line precedes the place where
reading began (`partial`).
"""

from msgspec import Struct, field

from ...core.conversation import Fact, Note


class PromptCount(Struct):
    """Lines of the prompts, for agents that count how many prompts the user took back."""

    _lines: list[int] = field(default_factory=list[int])

    def add(self, line: int) -> None:
        """Remember a prompt."""
        self._lines.append(line)

    def take_back(self, line: int, count: int, *, partial: bool) -> list[Note]:
        """Return a note of the last `count` prompts; nothing if there are not as many."""
        if not 0 < count <= len(self._lines):
            return [Note(line, Fact.REWOUND, "")] if partial and count else []
        first = self._lines[-count]
        del self._lines[-count:]
        return [Note(line, Fact.REWOUND, str(first))]


class PromptParents(Struct):
    """Records that prompts follow: of two prompts after the same record, the earlier one was abandoned.

    No other fork is a rewind: parallel tool calls, hooks and progress also give a record several children.
    """

    _begun: bool = False
    """True if a prompt was read: the parent of the first one may precede the place where reading began."""
    _prompts: dict[str, int] = field(default_factory=dict[str, int])
    _records: set[str] = field(default_factory=set[str])

    def add_record(self, record: str) -> None:
        """Remember that a record exists; needed only if reading is partial."""
        self._records.add(record)

    def add_prompt(self, parent: str, line: int, *, partial: bool) -> list[Note]:
        """Return a note if the prompt replaces an earlier one."""
        begun, self._begun = self._begun, True
        if not parent:
            return []
        earlier = self._prompts.get(parent)
        if earlier is not None:
            return [Note(line, Fact.REWOUND, str(earlier))]
        self._prompts[parent] = line
        return [Note(line, Fact.REWOUND, "")] if partial and begun and parent not in self._records else []


class EntryTree(Struct):
    """Entries that name their parents. The active branch contains the last entry that has events."""

    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _lines: dict[str, int] = field(default_factory=dict[str, int])
    _previous: str = ""
    _last: str = ""

    def add(self, entry: str, parent: str, *, partial: bool) -> None:
        """Add an entry. If its parent is lost, it follows the previous entry."""
        if entry:
            lost = parent and parent not in self._parents and not partial
            self._parents[entry] = self._previous if lost else parent
            self._previous = entry

    def has_events(self, entry: str, line: int) -> None:
        """Remember that an entry has events."""
        if entry:
            self._lines[entry] = line
            self._last = entry

    def abandoned(self, *, partial: bool) -> list[Note]:
        """Return a note for each abandoned stretch of lines."""
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
        """Return the entries from the last one with events back to the first known one."""
        branch = dict[str, None]()
        entry = self._last
        while entry in self._parents and entry not in branch:
            branch[entry] = None
            entry = self._parents[entry]
        return list(branch)
