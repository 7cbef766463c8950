"""The tree of a pi session: a person may go back to any entry and go on from there, as often as they like."""

from dataclasses import dataclass, field

from ...core.conversation import Fact, Note


@dataclass(slots=True)
class Tree:
    """The entries read so far. The branch that holds the last one is the one that the person did not leave."""

    partial: bool = False
    """Whether reading began in the middle of the file, so that an entry may be unknown and yet exist."""
    unknown: bool = False
    """Whether an entry goes on from one that stands before the place where reading began."""
    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _lines: dict[str, int] = field(default_factory=dict[str, int])
    _last: str = ""

    def grow(self, entry: str, parent: str, line: int) -> None:
        """Add an entry. One whose parent was lost goes on from the entry before it; the first versions named none."""
        if not entry:
            return
        known = parent in self._parents
        if self.partial and self._last and not known:
            self.unknown = True
        self._parents[entry] = parent if known or not parent else self._last
        self._lines[entry] = line
        self._last = entry

    def left(self) -> list[Note]:
        """One note for each stretch of lines that the person left."""
        if self.unknown:
            return [Note(self._lines[self._last], Fact.REWOUND, "")]
        kept = self._branch()
        notes: list[Note] = []
        first = 0
        for entry, line in self._lines.items():
            if entry not in kept:
                first = first or line
            elif first:
                notes.append(Note(line, Fact.REWOUND, str(first)))
                first = 0
        return notes

    def _branch(self) -> set[str]:
        kept: set[str] = set()
        entry = self._last
        while entry and entry not in kept:
            kept.add(entry)
            entry = self._parents.get(entry, "")
        return kept
