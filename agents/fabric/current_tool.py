"""Fabric tool for the context of a session."""

from typing import Annotated

from pydantic import Field

from ..toolset import ToolReply
from .context_window import Situation, window
from .fabric_context import FabricContext
from .fabric_data import CurrentReply
from .fabric_parameters import ProjectPath, SessionId

BUDGET = 3_000
"""Maximum tokens of the context."""


def get_current(
    fabric: FabricContext,
    session_id: SessionId,
    current_file: Annotated[str | None, Field(alias="currentFile", description="Open file")] = None,
    current_command: Annotated[str | None, Field(alias="currentCommand", description="Running command")] = None,
    project_path: ProjectPath = None,
    language: Annotated[str | None, Field(description="Only patterns of this language")] = None,
    file_path: Annotated[str | None, Field(alias="filePath", description="Prefer patterns for this path")] = None,
) -> ToolReply:
    """Return the memories that apply now: those of the session, of the project, patterns and suggestions."""
    fabric.enter(session_id)
    situation = Situation(
        fabric.folder(project_path),
        current_file or "",
        current_command or "",
        language or "",
        file_path or current_file or "",
    )
    return fabric.reply(CurrentReply(window(fabric, situation)), BUDGET, quotes=True)
