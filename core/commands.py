"""Results of searches in shell commands: what repaired an error, and which command performs a task."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds


class Remedy(StrEnum):
    """Action taken between the failure of a command and the success of the command or its replacement."""

    INSTEAD = "instead"
    """Another command was run instead."""
    BEFORE = "before"
    """Another command was run, which repaired the failure."""
    EDIT = "edit"
    """Files were edited."""
    RETRY = "retry"
    """The command was run again."""


class KnownFix(Struct, frozen=True):
    """Failed command and what repaired it.

    Attributes:
        id: ID of the newest exchange with this fix.
        at: Time of that exchange.
        command: Command that failed.
        error: Line of its output that states the failure.
        worked: Command that was run. Empty if files were edited.
        files: Files that were edited.
        sessions: Number of sessions with this fix.
    """

    id: str
    project: str
    at: Milliseconds | None
    command: str
    error: str
    remedy: Remedy
    worked: str = ""
    files: tuple[str, ...] = ()
    sessions: int = 1


class ProjectCommand(Struct, frozen=True):
    """Command that a project uses for a task.

    Attributes:
        id: ID of the newest exchange that ran the command.
        at: Time of that exchange.
        command: Command up to the word that names the task.
        usual: Most frequent form of the whole command.
        succeeded: Number of successful runs.
        failed: Number of failed runs.
        sessions: Number of sessions that ran the command.
    """

    id: str
    project: str
    at: Milliseconds | None
    task: str
    command: str
    usual: str
    succeeded: int
    failed: int
    sessions: int
