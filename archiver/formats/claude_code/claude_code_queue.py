"""Prompts typed while the assistant was busy.

Claude Code records such a prompt when it is queued, and again when it is sent. It does not record the prompt again if
the assistant reads it in the middle of its work. So the reader holds the prompt back until the next exchange begins. If
no other line contains the prompt by then, it belongs to the exchange in which it was typed.
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
    """List to which delayed prompts, or skips in their place, are appended."""
    _prompts: list[_QueuedPrompt] = field(default_factory=list[_QueuedPrompt])

    def add(self, turn: Turn) -> None:
        """Delay a queued prompt."""
        self._prompts.append(_QueuedPrompt(turn))

    def mark_line(self, line: int, *, accounted: bool) -> bool:
        """Record whether a line has other events. Return whether a prompt of this line is delayed."""
        if not self._prompts:
            return False
        on_line = [prompt for prompt in self._prompts if prompt.turn.line == line]
        for prompt in on_line:
            prompt.accounted = accounted
        return bool(on_line)

    def skip(self, text: str) -> None:
        """Skip the first delayed prompt with this text."""
        words = text.split() if self._prompts else []
        for prompt in self._prompts:
            if not prompt.skipped and prompt.turn.text.split() == words:
                prompt.skipped = SkipReason.QUEUED
                return

    def read(self, text: str) -> None:
        """Remove the first prompt with this text from the queue, or the first prompt if the text is empty."""
        words = text.split()
        for prompt in self._prompts:
            if not (prompt.skipped or prompt.read) and (not words or prompt.turn.text.split() == words):
                prompt.read = True
                return

    def withdraw(self) -> None:
        """Skip every prompt in the queue."""
        for prompt in self._prompts:
            if not prompt.read:
                prompt.skipped = prompt.skipped or SkipReason.WITHDRAWN

    def settle(self, line: int) -> None:
        """Release or skip every delayed prompt. `line` is the start of the next exchange; 0 at the end of the file."""
        accounted = {prompt.turn.line for prompt in self._prompts if not prompt.skipped}
        for prompt in self._prompts:
            typed_on = prompt.turn.line
            if not prompt.skipped:
                self.released.append(prompt.turn)
            elif not prompt.accounted and typed_on not in accounted and typed_on != line:
                accounted.add(typed_on)
                self.released.append(Skipped(typed_on, prompt.skipped))
        self._prompts.clear()
