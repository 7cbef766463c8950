"""The tree of a pi session: a person may go back to any entry and go on from there, as often as they like."""

from msgspec import Struct, field

from ...core.conversation import Fact, Note


class Tree(Struct):
    """The entries read so far. The branch that holds the last one that says something is the one that was not left."""

    partial: bool = False
    """Whether reading began in the middle of the file, so that an entry may be unknown and yet exist."""
    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _lines: dict[str, int] = field(default_factory=dict[str, int])
    _before: str = ""
    _last: str = ""

    def grow(self, entry: str, parent: str) -> None:
        """Add an entry. One whose parent was lost goes on from the entry before it; the first versions named none."""
        if entry:
            lost = parent and parent not in self._parents and not self.partial
            self._parents[entry] = self._before if lost else parent
            self._before = entry

    def tell(self, entry: str, line: int) -> None:
        """The entry that was added says something."""
        if entry:
            self._lines[entry] = line
            self._last = entry

    def left(self) -> list[Note]:
        """One note for each stretch of lines that the person left, or the one that says that it is not known."""
        branch = self._branch()
        kept = set(branch)
        if self.partial and branch and branch[-1] != next(iter(self._parents)):
            return [Note(self._lines[self._last], Fact.REWOUND, "")]
        notes: list[Note] = []
        first = 0
        for entry, line in self._lines.items():
            if entry not in kept:
                first = first or line
            elif first:
                notes.append(Note(line, Fact.REWOUND, str(first)))
                first = 0
        return notes

    def _branch(self) -> list[str]:
        """The entries from the last that says something back to the first that is known."""
        branch = dict[str, None]()
        entry = self._last
        while entry in self._parents and entry not in branch:
            branch[entry] = None
            entry = self._parents[entry]
        return list(branch)
