"""Where and when an edit was made."""

import os
from pathlib import Path

from ...archiver.store import Edit
from ...core.conversation import Milliseconds


def whole_path(edit: Edit) -> str:
    """The file's whole path, without `.` and `..`; a relative one lies below the folder that the agent worked in."""
    return os.path.normpath(Path(edit.cwd) / edit.path)


def edited_at(edit: Edit) -> Milliseconds | None:
    """When at the latest: at the end of the exchange."""
    return edit.ended or edit.started
