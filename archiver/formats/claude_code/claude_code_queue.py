"""Prompts typed while the assistant was busy.

Such a prompt is recorded when it is queued, and again when it is sent, but not if the assistant reads it in the middle
of its work. So it is held until the next exchange opens. If no other line has it by then, it belongs to the exchange in
which it was typed.
"""

from msgspec import Struct, field

from ....core.conversation import Skipped, Turn
from ..record_events import SkipReason
from ..transcript_format import Event


class _QueuedPrompt(Struct):
    turn: Turn
    skipped: str = ""
    """Reason for skipping the prompt."""
    read: bool = False
    """True if the assistant read the prompt, so that it is no longer in the queue."""
    accounted: bool = False
    """True if its line has other events, so that it needs no skip."""


class PromptQueue(Struct):
    """Queued prompts of the current exchange."""

    released: list[Event]
    """Receives the prompts and skips once they are decided."""
    _held: list[_QueuedPrompt] = field(default_factory=list[_QueuedPrompt])

    def add(self, turn: Turn) -> None:
        """Hold a queued prompt."""
        self._held.append(_QueuedPrompt(turn))

    def holds(self, line: int, *, accounted: bool) -> bool:
        """Return whether a prompt of this line is held; `accounted` says that the line has other events."""
        if not self._held:
            return False
        held = [prompt for prompt in self._held if prompt.turn.line == line]
        for prompt in held:
            prompt.accounted = accounted
        return bool(held)

    def seen_again(self, text: str) -> None:
        """Skip the first prompt with these words."""
        words = text.split() if self._held else []
        for prompt in self._held:
            if not prompt.skipped and prompt.turn.text.split() == words:
                prompt.skipped = SkipReason.QUEUED
                return

    def read(self, text: str) -> None:
        """Take the first prompt with these words, or the first of all if there are no words, out of the queue."""
        words = text.split()
        for prompt in self._held:
            if not (prompt.skipped or prompt.read) and (not words or prompt.turn.text.split() == words):
                prompt.read = True
                return

    def withdraw(self) -> None:
        """Skip every prompt in the queue."""
        for prompt in self._held:
            if not prompt.read:
                prompt.skipped = prompt.skipped or SkipReason.WITHDRAWN

    def settle(self, line: int) -> None:
        """Decide about every prompt: line `line` opens an exchange, or no line follows (0)."""
        accounted = {prompt.turn.line for prompt in self._held if not prompt.skipped}
        for prompt in self._held:
            own = prompt.turn.line
            if not prompt.skipped:
                self.released.append(prompt.turn)
            elif not prompt.accounted and own not in accounted and own != line:
                accounted.add(own)
                self.released.append(Skipped(own, prompt.skipped))
        self._held.clear()
