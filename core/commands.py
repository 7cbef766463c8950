"""Results of searches in archived shell commands: fixes of failed commands, and the commands for a task."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds


class Remedy(StrEnum):
    """Action that repaired the failure of a command."""

    INSTEAD = "instead"
    """Another command succeeded in place of the failed command."""
    BEFORE = "before"
    """Another command was run first. Then the failed command succeeded."""
    EDIT = "edit"
    """Files were edited. Then the failed command succeeded."""


class KnownFix(Struct, frozen=True):
    """Failed command, and the command or edit that repaired the failure.

    Attributes:
        id: ID of the newest exchange with this fix.
        at: Time of that exchange.
        command: Command that failed.
        error: Line of the output of `command` that states the failure.
        worked: Command that repaired the failure. Empty for `EDIT`.
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
        command: Beginning of the command, up to the word that names the task.
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
