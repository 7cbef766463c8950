"""Handling of content that an agent records twice. The reader keeps one of the two records."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct, field

from ...core.conversation import Skipped, Turn
from .record_events import RecordEvents, SkipReason
from .transcript_format import Event


class Repetitions(Struct):
    """Turns of the current exchange that may be repeated by a more detailed record.

    All records of one event have the same key. A turn is delayed until the exchange ends. It is skipped if a more
    detailed record of the same event precedes or follows it.
    """

    released: list[Event]
    """List to which delayed turns, or `Skipped` events in their place, are appended."""
    _delayed: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    _registered: set[str] = field(default_factory=set[str])

    def delay(self, key: str, turns: Sequence[Turn], *, only_record: bool) -> RecordEvents:
        """Delay the turns of a record, or return a reason for skipping the record.

        The turns are returned at once if the line has other records (`only_record` is False).
        """
        if not turns:
            return SkipReason.EMPTY
        if not only_record:
            return turns
        if key in self._registered:
            return SkipReason.REPEATED
        self._delayed.setdefault(key, []).extend(turns)
        return []

    def register(self, key: str) -> None:
        """Record that an event has a more detailed record, and skip the delayed turns of this event."""
        self._registered.add(key)
        self.released += [Skipped(turn.line, SkipReason.REPEATED) for turn in self._delayed.pop(key, [])]

    def settle(self) -> None:
        """End the exchange, and release the delayed turns that have no more detailed record."""
        self.released += sorted(chain.from_iterable(self._delayed.values()), key=lambda turn: turn.line)
        self._delayed.clear()
        self._registered.clear()


class RecordedTwice(Struct):
    """Values of the current exchange, for agents that record a value in two records of different types.

    Such values are prompts and token counts. A value is a repetition if `take` finds the same value from the other type
    of record.
    """

    _seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def take(self, value: str, *, record_type: str) -> bool:
        """Remove one value that was added from a record of this type. Return False if there is no such value."""
        copy = (record_type, " ".join(value.split()))
        if not self._seen[copy]:
            return False
        self._seen[copy] -= 1
        return True

    def add(self, value: str, *, record_type: str) -> None:
        """Add a value from a record of this type."""
        self._seen[record_type, " ".join(value.split())] += 1

    def clear(self) -> None:
        """Forget all values at the end of an exchange."""
        self._seen.clear()
