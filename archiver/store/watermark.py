"""The watermark: the number of the last committed change, in a small file beside the raw copies.

A watermark that is higher than the last change in the database shows that committed changes were lost. This happens,
for example, if the write-ahead log is deleted. The file is written after each commit, but not flushed to the disk.
Therefore, its number can be too small after a power failure, but never too large.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...core.amount import many
from ...core.durability import with_checksum, without_checksum
from ...core.home import Home
from .backups import stamp
from .change_log import ChangeLog
from .database import Database
from .sqlite import has_log

LOSS_HINT: Final = (
    "The last stored memories or observations may be lost, for example because palaver.db-wal was deleted or damaged. "
    "Compare with a file in backups/. Run `palaver archive`, then `palaver fsck --repair`, which restores memories "
    "from a damaged palaver.db-wal, and stops reporting the loss."
)


class Watermark:
    """Watermark of one store. It shows how many committed changes are missing from the database."""

    def __init__(self, database: Database, changes: ChangeLog) -> None:
        self._home, self._changes = Home(database.path.parent), changes
        self._path, self._lost_path = _paths(self._home)
        self._written = -1

    @property
    def missing(self) -> int:
        """Number of committed changes that are missing from the database."""
        if self._lost_path.exists():
            return _read(self._lost_path) or 1
        return self._behind()

    @property
    def loss(self) -> str:
        """Description of the missing changes, or an empty string if no changes are missing."""
        count = self.missing
        if not count:
            return ""
        return f"{many(count, 'acknowledged change is', 'acknowledged changes are')} missing from the database"

    def advance(self) -> None:
        """Write the number of the last change to the file. Call this after each commit.

        A recorded loss stays recorded.
        """
        last = self._changes.last()
        if last == self._written or not self._path.parent.is_dir():
            return
        _write(self._path, last)
        self._written = last

    def check(self) -> None:
        """Before the first write, record how many changes are missing, and save the write-ahead log.

        Further calls have no effect.
        """
        if self._written < 0:
            self._written = 0
            if missing := self._behind():
                with suppress(OSError):
                    _keep_log(self._home)
                _write(self._lost_path, missing)

    def accept(self) -> None:
        """Delete the record of a loss, and set the watermark to the last change in the database."""
        reset(self._home)
        self._written = 0
        self.advance()

    def _behind(self) -> int:
        return max(0, _read(self._path) - self._changes.last())


def reset(home: Home) -> None:
    """Delete the watermark and the record of a loss. Call this when the database is replaced."""
    for path in _paths(home):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _paths(home: Home) -> tuple[Path, Path]:
    """Return the paths of two files: the watermark, and the record of a loss."""
    return home.changes, home.changes.with_name(f"{home.changes.name}.lost")


def _keep_log(home: Home) -> None:
    """Copy the write-ahead log to the backups before SQLite removes the log."""
    if has_log(home.database):
        home.backups.mkdir(mode=0o700, exist_ok=True)
        log = home.database.with_name(f"{home.database.name}-wal")
        shutil.copy2(log, home.backups / f"lost-{stamp()}.db-wal")


def _read(path: Path) -> int:
    """Return the number in a file, or 0 if the file is missing or damaged."""
    try:
        return int(without_checksum(path.read_bytes()) or 0)
    except (OSError, ValueError):
        return 0


def _write(path: Path, number: int) -> None:
    with suppress(OSError):
        path.touch(0o600)
        path.write_bytes(with_checksum(b"%020d" % number))
