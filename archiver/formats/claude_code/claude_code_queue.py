"""Queue of prompts that the user typed while the assistant was busy.

Claude Code records a queued prompt when it is typed, and again when it is sent. If the assistant reads the prompt in
the middle of its work, there is no second record. Therefore, the reader delays the prompt until the next exchange
begins. If no other line contains the prompt by then, the prompt belongs to the exchange in which it was typed.
"""

from msgspec import Struct, field

from ....core.conversation import Skipped, Turn
from ..json_values import is_media_label
from ..record_events import SkipReason
from ..transcript_format import Event


class _QueuedPrompt(Struct):
    turn: Turn
    skipped: str = ""
    """Reason for skipping the prompt, or an empty string if it is not skipped."""
    read: bool = False
    """True if the assistant read the prompt, which removes the prompt from the queue."""
    accounted: bool = False
    """True if the line of the prompt has other events and therefore needs no `Skipped` event."""


class PromptQueue(Struct):
    """Queued prompts of the current exchange."""

    released: list[Event]
    """List to which delayed prompts, or `Skipped` events in their place, are appended."""
    _prompts: list[_QueuedPrompt] = field(default_factory=list[_QueuedPrompt])

    def add(self, turn: Turn) -> None:
        """Delay a queued prompt."""
        self._prompts.append(_QueuedPrompt(turn))

    def mark_line(self, line: int, *, accounted: bool) -> bool:
        """Return whether prompts of this line are delayed.

        Mark these prompts as accounted if the line has other events.
        """
        if not self._prompts:
            return False
        on_line = [prompt for prompt in self._prompts if prompt.turn.line == line]
        for prompt in on_line:
            prompt.accounted = accounted
        return bool(on_line)

    def skip(self, text: str) -> None:
        """Mark the first delayed prompt with this text as skipped."""
        words = _words(text) if self._prompts else []
        for prompt in self._prompts:
            if not prompt.skipped and _words(prompt.turn.text) == words:
                prompt.skipped = SkipReason.QUEUED
                return

    def read(self, text: str) -> None:
        """Mark the first prompt with this text as read by the assistant. An empty text matches the first prompt."""
        words = _words(text)
        for prompt in self._prompts:
            if not (prompt.skipped or prompt.read) and (not words or _words(prompt.turn.text) == words):
                prompt.read = True
                return

    def withdraw(self) -> None:
        """Mark every unread prompt as withdrawn by the user."""
        for prompt in self._prompts:
            if not prompt.read:
                prompt.skipped = prompt.skipped or SkipReason.WITHDRAWN

    def settle(self, line: int) -> None:
        """Move every delayed prompt to `released`, and replace skipped prompts by `Skipped` events.

        `line` is the first line of the next exchange, or 0 at the end of the file.
        """
        accounted = {prompt.turn.line for prompt in self._prompts if not prompt.skipped}
        for prompt in self._prompts:
            typed_on = prompt.turn.line
            if not prompt.skipped:
                self.released.append(prompt.turn)
            elif not prompt.accounted and typed_on not in accounted and typed_on != line:
                accounted.add(typed_on)
                self.released.append(Skipped(typed_on, prompt.skipped))
        self._prompts.clear()


def _words(text: str) -> list[str]:
    """Return the words of a prompt. Its pictures are recorded only when it is sent, so their labels do not count."""
    return " ".join(line for line in text.splitlines() if not is_media_label(line)).split()
