"""Content that an agent records twice, on two lines: each reader keeps one of them."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from ...core.conversation import Skipped, Turn
from .record_events import RecordEvents, SkipReason
from .transcript_format import Event


class Repetitions(Struct):
    """Turns of the current exchange that other lines may record in more detail.

    Such a turn is held back until the exchange ends. It is skipped if the better record exists, before or after it. A
    key is the same for all records of one event.
    """

    released: list[Event]
    """Receives the turns and skips once they are decided."""
    _held: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    _recorded: set[str] = field(default_factory=set[str])

    def hold(self, key: str, turns: Sequence[Turn], *, alone: bool) -> RecordEvents:
        """Hold the turns of a record back or skip them; keep them if the record is not `alone` on its line."""
        if not turns:
            return SkipReason.EMPTY
        if not alone:
            return turns
        if key in self._recorded:
            return SkipReason.REPEATED
        self._held.setdefault(key, []).extend(turns)
        return []

    def record(self, key: str) -> None:
        """Report that the better record exists."""
        self._recorded.add(key)
        self.released += [Skipped(turn.line, SkipReason.REPEATED) for turn in self._held.pop(key, [])]

    def settle(self) -> None:
        """End the exchange: release what has no better record."""
        self.released += sorted((turn for held in self._held.values() for turn in held), key=lambda turn: turn.line)
        self._held.clear()
        self._recorded.clear()


class PromptCopies(Struct):
    """Prompts of the current exchange, in transcripts that record each in several places."""

    _seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def take(self, text: str, *, place: str) -> bool:
        """Return whether `place` has this prompt already; each copy there accounts for one repetition."""
        copy = (place, " ".join(text.split()))
        if not self._seen[copy]:
            return False
        self._seen[copy] -= 1
        return True

    def add(self, text: str, *, place: str) -> None:
        """Remember a prompt recorded in a place."""
        self._seen[place, " ".join(text.split())] += 1

    def clear(self) -> None:
        """End the exchange."""
        self._seen.clear()
