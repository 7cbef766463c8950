"""Progress of a long tool call. The tool reports it from its thread, and the server sends it to the client.

Questions that the user answers before a tool deletes something.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

from ..core.errors import PalaverError
from ..core.memory import StoredMemory
from ..core.runtime import Reporter, silent
from ..templates.quote import brief

REPORTER: Final[ContextVar[Reporter]] = ContextVar("REPORTER", default=silent)
"""Function to which a tool reports the progress of the current call. Outside a server, reports are ignored."""


class CallProgress:
    """Latest progress message of a call, such as `Reading: 12 of 340`. An instance is a `Reporter`."""

    def __init__(self) -> None:
        self.message = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Store the name of the stage, its number of finished steps and its total number of steps."""
        self.message = f"{stage}: {done:,} of {total:,}"


_LISTED: Final = 10
"""Maximum number of items that a question lists."""
_TOKENS: Final = 40
"""Maximum tokens of an item in a question."""


class DeletionDeclined(PalaverError):
    """Error: the user declined a deletion. The operation changed nothing."""

    hint = "Do not repeat the call unless the user asks for it."

    def __init__(self) -> None:
        super().__init__("The user declined. Nothing was deleted")


def delete_question(action: str, items: Sequence[str], note: str = "") -> str:
    """Return a question such as `Forget 3 memories?` that lists the items. Without items, return an empty text."""
    if not items:
        return ""
    rows = [f"- {brief(item, _TOKENS)}" for item in items[:_LISTED]]
    unlisted = [f"- and {len(items) - _LISTED:,} more"] if len(items) > _LISTED else []
    return "\n".join([f"{action}?", *rows, *unlisted, *([note] if note else [])])


def forget_question(memories: Sequence[StoredMemory], note: str = "You can undo it.") -> str:
    """Return a question that lists the memories to forget."""
    items = [
        f"{stored.id} [{stored.memory.namespace}] {stored.memory.title or stored.memory.content}" for stored in memories
    ]
    return delete_question("Forget this memory" if len(items) == 1 else f"Forget {len(items):,} memories", items, note)
