"""Support for Roo Code, which continues the code of Cline.

Each task is a folder in the extension's storage in the editor, with the same files as a task of Cline, and with
`history_item.json`.

- Supported: everything that is supported for Cline, and tasks that other tasks started.
- Not supported: checkpoints, pictures of the browser, modes.
- Tested with: records in the form of a task of August 2026 that was read as text.
- Test data: `examples/roo-code.jsonl`.
"""

from .cline import TaskFormat
from .transcript_format import ContainerFormat


class RooCode(TaskFormat):
    """Tasks of the extension."""

    agent = "roo-code"
    extension = "rooveterinaryinc.roo-cline"
    parent_fields = ("parentTaskId",)


FORMAT: ContainerFormat = RooCode()
