"""Content that an agent records on two lines. Each reader keeps one of the two records."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from ...core.conversation import Skipped, Turn
from .record_events import RecordEvents, SkipReason
from .transcript_format import Event


class Repetitions(Struct):
    """Turns of the current exchange that other lines may record in more detail.

    Such a turn is held back until the exchange ends. The turn is skipped if a more detailed record occurs before or
    after it. All records of one event have the same key.
    """

    released: list[Event]
    """List to which turns and skips are appended once decided."""
    _held: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    _recorded: set[str] = field(default_factory=set[str])

    def hold(self, key: str, turns: Sequence[Turn], *, alone: bool) -> RecordEvents:
        """Hold back or skip the turns of a record.

        Turns are kept if the record shares its line with other records (`alone` is False).
        """
        if not turns:
            return SkipReason.EMPTY
        if not alone:
            return turns
        if key in self._recorded:
            return SkipReason.REPEATED
        self._held.setdefault(key, []).extend(turns)
        return []

    def record(self, key: str) -> None:
        """Record that the more detailed record of this key exists."""
        self._recorded.add(key)
        self.released += [Skipped(turn.line, SkipReason.REPEATED) for turn in self._held.pop(key, [])]

    def settle(self) -> None:
        """End the exchange and release turns without a more detailed record."""
        self.released += sorted((turn for held in self._held.values() for turn in held), key=lambda turn: turn.line)
        self._held.clear()
        self._recorded.clear()


class PromptCopies(Struct):
    """Prompts of the current exchange, in transcripts that record each prompt in several forms."""

    _seen: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def take(self, text: str, *, place: str) -> bool:
        """Return whether `place` contains an unused copy of this prompt, and mark that copy as used."""
        copy = (place, " ".join(text.split()))
        if not self._seen[copy]:
            return False
        self._seen[copy] -= 1
        return True

    def add(self, text: str, *, place: str) -> None:
        """Add a prompt recorded in `place`."""
        self._seen[place, " ".join(text.split())] += 1

    def clear(self) -> None:
        """End the exchange."""
        self._seen.clear()
