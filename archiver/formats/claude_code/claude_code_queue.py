"""Prompts typed while the assistant was busy.

Claude Code records such a prompt when it is queued, and again when it is sent. It does not record the prompt again if
the assistant reads the prompt in the middle of its work. So the prompt is held back until the next exchange opens. If
no other line contains the prompt by then, the prompt belongs to the exchange in which it was typed.
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
    """True if the assistant read the prompt, which removes the prompt from the queue."""
    accounted: bool = False
    """True if the line of the prompt has other events and therefore needs no skip."""


class PromptQueue(Struct):
    """Queued prompts of the current exchange."""

    released: list[Event]
    """List to which prompts and skips are appended once decided."""
    _held: list[_QueuedPrompt] = field(default_factory=list[_QueuedPrompt])

    def add(self, turn: Turn) -> None:
        """Hold back a queued prompt."""
        self._held.append(_QueuedPrompt(turn))

    def holds(self, line: int, *, accounted: bool) -> bool:
        """Return whether a prompt of this line is held back.

        `accounted` is True if the line has other events.
        """
        if not self._held:
            return False
        held = [prompt for prompt in self._held if prompt.turn.line == line]
        for prompt in held:
            prompt.accounted = accounted
        return bool(held)

    def seen_again(self, text: str) -> None:
        """Skip the first held prompt with this text."""
        words = text.split() if self._held else []
        for prompt in self._held:
            if not prompt.skipped and prompt.turn.text.split() == words:
                prompt.skipped = SkipReason.QUEUED
                return

    def read(self, text: str) -> None:
        """Remove the first prompt with this text from the queue, or the first prompt if the text is empty."""
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
        """Release or skip every held prompt.

        Line `line` opens an exchange; 0 means that no line follows.
        """
        accounted = {prompt.turn.line for prompt in self._held if not prompt.skipped}
        for prompt in self._held:
            own = prompt.turn.line
            if not prompt.skipped:
                self.released.append(prompt.turn)
            elif not prompt.accounted and own not in accounted and own != line:
                accounted.add(own)
                self.released.append(Skipped(own, prompt.skipped))
        self._held.clear()
