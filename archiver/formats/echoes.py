"""Echoes: things that an agent writes down twice, on two lines, of which one tells more than the other.

The poorer telling is held back until the exchange ends. It is dropped when the richer one stands before or after it,
and takes its place when there is none.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from ...core.conversation import Note, Skipped, Turn
from .given import REPEATED, Given


class Echoes(Struct):
    """The poorer tellings of one exchange. A key is equal for all tellings of one thing, and for nothing else."""

    alone: bool = True
    """Whether the record being read is all of its line: a line that says several things is not dropped for one."""
    _held: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    _heard: set[str] = field(default_factory=set[str])
    _settled: list[Turn | Skipped] = field(default_factory=list["Turn | Skipped"])

    def hold(self, key: str, turn: Turn) -> bool:
        """Keep a poorer telling back; False when the richer one is known already."""
        if key in self._heard:
            return False
        self._held.setdefault(key, []).append(turn)
        return True

    def give(self, key: str, turn: Turn) -> Given:
        """The poorer telling where it cannot be held back, nothing where it is, or why it is passed over."""
        if not self.alone:
            return [turn]
        return [] if self.hold(key, turn) else REPEATED

    def hear(self, key: str) -> None:
        """The richer telling was found."""
        self._heard.add(key)
        self._settled += [Skipped(turn.line, REPEATED) for turn in self._held.pop(key, [])]

    def settle(self) -> None:
        """The exchange ends: what waited for its richer telling is all there is."""
        self._settled += sorted((turn for held in self._held.values() for turn in held), key=lambda turn: turn.line)
        self._held.clear()
        self._heard.clear()

    def among(self, lines: Iterable[Sequence[Turn | Note | Skipped]]) -> Iterator[Turn | Note | Skipped]:
        """What lines give, each line's after what it decided; at the end what still waits."""
        for events in lines:
            yield from self.take()
            yield from events
        self.settle()
        yield from self.take()

    def take(self) -> list[Turn | Skipped]:
        """What was decided; it is not given twice."""
        settled, self._settled = self._settled, []
        return settled
