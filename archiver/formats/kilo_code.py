"""Support for Kilo Code.

Until spring 2026, the extension continued the code of Roo Code, with tasks in the storage of the extension. Since then,
extension and program continue the code of OpenCode, with sessions in `~/.local/share/kilo/kilo.db`.

- Supported: everything that is supported for Cline and for OpenCode.
- Not supported: checkpoints, pictures of the browser, modes, steps, snapshots.
- Tested with: descriptions only. The forms of tasks and of the database were tested with files of Roo Code and of
  OpenCode.
- Test data: `examples/kilo-code.jsonl`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...core.conversation import Session
from ..lines import head_records
from . import opencode
from .cline import EXTENSIONS, TaskFormat
from .containers import ForeignDatabase, fingerprint
from .record_reader import RecordReader, data_home
from .transcript_format import ContainedSession, ContainerFormat

_DATABASE = "kilo.db"
_SESSION = "ses_"
"""Beginning of the ID of a session in the database. The ID of a task is a UUID or a number."""


class _Database(opencode.OpenCode):
    """Sessions in the database, whose form is that of OpenCode."""

    agent = "kilo-code"


class KiloCode(TaskFormat):
    """Tasks of the older extension, and sessions of the newer one and of the program."""

    agent = "kilo-code"
    extension = EXTENSIONS[2]
    parent_fields = ("parentTaskId",)
    _database = _Database()

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the tasks in each editor, and the folder of the database."""
        data = data_home()
        return [*super().locations(), (data / "kilo", _DATABASE)]

    def is_container(self, path: Path) -> bool:
        """Return whether a file represents a task, or is the database."""
        return opencode.has_sessions(path) if path.name == _DATABASE else super().is_container(path)

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the database, or a file of the task, changes."""
        if path.name == _DATABASE:
            return fingerprint(*ForeignDatabase(path).state())
        return super().container_state(path)

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the task, or every session of the database."""
        return opencode.sessions(path) if path.name == _DATABASE else super().sessions(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by its header."""
        from_database = any("session" in record for record in head_records(head)) or path.stem.startswith(_SESSION)
        return self._database.identify(path, head) if from_database else super().identify(path, head)

    def reader(self, session: Session, *, shorten: bool = True) -> RecordReader:
        """Return a reader for a session of the database, or for a task."""
        if session.native_id.startswith(_SESSION):
            return self._database.reader(session, shorten=shorten)
        return super().reader(session, shorten=shorten)


FORMAT: ContainerFormat = KiloCode()
