"""Progress of a long tool call. The tool reports it from its thread, and the server sends it to the client."""

from contextvars import ContextVar
from typing import Final

from ..core.progress import Reporter, silent

REPORTER: Final[ContextVar[Reporter]] = ContextVar("REPORTER", default=silent)
"""Function to which a tool reports the progress of the current call. Outside a server, reports are ignored."""


class CallProgress:
    """Latest progress message of a call, such as `Reading: 12 of 340`. An instance is a `Reporter`."""

    def __init__(self) -> None:
        self.message = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Store the name of the stage, its number of finished steps and its total number of steps."""
        self.message = f"{stage}: {done:,} of {total:,}"
