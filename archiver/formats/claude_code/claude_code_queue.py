"""Prompts typed while the assistant was busy.

They are written down twice, when they are queued and when they are sent, but only once when the assistant takes them
up in the middle of its work. So a queued prompt is held until the next exchange opens; then it is either known from
another line or belongs to the exchange in which it was typed.
"""

from msgspec import Struct

from ....core.conversation import Skipped, Turn

QUEUED = "queued"
"""The prompt stands on a later line, or was no person's."""
WITHDRAWN = "withdrawn"
"""The person took the prompt back into the input line."""


class _Held(Struct):
    turn: Turn
    dropped: str = ""
    taken: bool = False
    """Whether the assistant took the prompt up, so that it waits no more."""
    accounted: bool = False
    """Whether the line says something else too, so that nothing is missing if the prompt is dropped."""


class Queue:
    """The prompts of one exchange that wait to be seen again."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self.settled: list[Turn | Skipped] = []
        """What was decided and not yet taken."""

    def hold(self, turn: Turn) -> None:
        """Keep a queued prompt back."""
        self._held.append(_Held(turn))

    def holds(self, line: int, *, accounted: bool) -> bool:
        """Whether something of this line is kept back; `accounted` says that the line gave other events."""
        if not self._held:
            return False
        held = [held for held in self._held if held.turn.line == line]
        for each in held:
            each.accounted = accounted
        return bool(held)

    def seen_again(self, text: str) -> None:
        """Drop the first prompt of these words."""
        if self._held:
            words = text.split()
            for held in self._held:
                if not held.dropped and held.turn.text.split() == words:
                    held.dropped = QUEUED
                    return

    def take_up(self, text: str) -> None:
        """The first prompt of these words, the first of all where none are told, waits no more."""
        words = text.split()
        for held in self._held:
            if not (held.dropped or held.taken) and (not words or held.turn.text.split() == words):
                held.taken = True
                return

    def withdraw(self) -> None:
        """Drop every prompt that waits."""
        for held in self._held:
            if not held.taken:
                held.dropped = held.dropped or WITHDRAWN

    def settle(self, line: int) -> None:
        """Decide about everything held, because line `line` opens an exchange, or 0 because no line is left."""
        kept = {held.turn.line for held in self._held if not held.dropped}
        for held in self._held:
            here = held.turn.line
            if not held.dropped:
                self.settled.append(held.turn)
            elif not held.accounted and here not in kept and here != line:
                kept.add(here)
                self.settled.append(Skipped(here, held.dropped))
        self._held.clear()

    def take_settled(self) -> list[Turn | Skipped]:
        """What was decided; it is not given twice."""
        settled, self.settled = self.settled, []
        return settled
