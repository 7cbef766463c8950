"""The watermark: the number of the last committed change, in a small file beside the raw copies.

A watermark that is higher than the last change in the database shows that committed changes were lost. This happens,
for example, if the write-ahead log is deleted. The file is written after each commit, but not flushed to the disk.
Therefore, its number can be too small after a power failure, but never too large. A damaged or missing file proves
nothing, so it is reported like a loss.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...core.amount import many
from ...core.durability import replacing, with_checksum, without_checksum
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
        """Number of committed changes that are missing from the database, as far as it is known."""
        if self._lost_path.exists():
            return _read(self._lost_path) or 1
        return self._behind()

    @property
    def loss(self) -> str:
        """Description of the missing changes, or an empty string if no changes are missing."""
        if self._is_unreadable or (self._lost_path.exists() and not _read(self._lost_path)):
            return f"{self._path} is missing or damaged, so lost changes cannot be ruled out"
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

        With a damaged watermark, the recorded number is 0, which means that it is unknown. Further calls have no
        effect.
        """
        if self._written < 0:
            self._written = 0
            missing = self._behind()
            if missing or self._is_unreadable:
                with suppress(OSError):
                    _keep_log(self._home)
                _write(self._lost_path, missing)
            elif not self._path.exists():
                _write(self._path, self._changes.last())  # A process can be killed between a commit and `advance`.

    def accept(self) -> None:
        """Delete the record of a loss, and set the watermark to the last change in the database."""
        reset(self._home)
        self._written = 0
        self.advance()

    def _behind(self) -> int:
        return max(0, (_read(self._path) or 0) - self._changes.last())

    @property
    def _is_unreadable(self) -> bool:
        """True if the watermark is damaged, or missing although changes were committed."""
        if self._path.exists():
            return _read(self._path) is None
        return self._path.parent.is_dir() and self._changes.last() > 0


def reset(home: Home) -> None:
    """Reset the watermark to 0, and delete the record of a loss. Call this when the database is replaced."""
    mark, lost = _paths(home)
    if mark.parent.is_dir():
        _write(mark, 0)
    with suppress(OSError):
        lost.unlink(missing_ok=True)


def _paths(home: Home) -> tuple[Path, Path]:
    """Return the paths of two files: the watermark, and the record of a loss."""
    return home.changes, home.changes.with_name(f"{home.changes.name}.lost")


def _keep_log(home: Home) -> None:
    """Copy the write-ahead log to the backups before SQLite removes the log."""
    if has_log(home.database):
        home.backups.mkdir(mode=0o700, exist_ok=True)
        log = home.database.with_name(f"{home.database.name}-wal")
        shutil.copy2(log, home.backups / f"lost-{stamp()}.db-wal")


def _read(path: Path) -> int | None:
    """Return the number in a file, or None if the file is missing or damaged."""
    try:
        return int(without_checksum(path.read_bytes()) or b"damaged")
    except (OSError, ValueError):
        return None


def _write(path: Path, number: int) -> None:
    """Write a number of fixed length in place, so that a killed process leaves no partial file."""
    line = with_checksum(b"%020d" % number)
    with suppress(OSError):
        if not path.exists():
            with replacing(path) as file:
                file.write(line)
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, line, 0)
            os.ftruncate(descriptor, len(line))
        finally:
            os.close(descriptor)
