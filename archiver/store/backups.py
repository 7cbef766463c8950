"""Backups of the database. Palaver makes one verified backup per day and keeps the newest seven."""

import shutil
from pathlib import Path
from typing import Final

from ...core.clock import now, show_instant
from ...core.durability import sync_path
from ...core.errors import StoreCorrupt, StoreError
from ...core.home import Home
from .database import Database

KEPT: Final = 7


class Backups:
    """Folder of backups, with names such as `palaver-2026-11-24.db`.

    `salvage` and the watermark also save damaged files in this folder, under names such as
    `damaged-2026-11-24-03600.db`.
    """

    def __init__(self, home: Home) -> None:
        self._folder = home.backups

    def all(self) -> list[Path]:
        """Return the backups, newest first."""
        return sorted(self._folder.glob("palaver-*.db"), reverse=True)

    @property
    def is_due(self) -> bool:
        """True if no backup exists for the current day (UTC)."""
        return not self._today.exists()

    def make(self, database: Database) -> None:
        """Copy the database, verify the copy, and name it after the current day. Keep only the newest seven backups.

        The caller must hold the lease `BACKUP`. Therefore, an existing unfinished copy comes from a killed process and
        is deleted.

        Raises:
            StoreError: There is not enough free space.
            StoreCorrupt: The database or the copy is damaged.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(self._folder).free < 2 * database.path.stat().st_size:
            raise StoreError("not enough free space for a backup of the database", hint="Free some space.")
        unfinished = self._folder / "unfinished"
        try:
            unfinished.unlink(missing_ok=True)
            unfinished.touch(mode=0o600)
            database.copy_to(unfinished)
            if problems := Database.problems(unfinished):
                raise StoreCorrupt(f"{unfinished}: {problems[0]}", hint="Check the disk.")
            sync_path(unfinished)
            unfinished.replace(self._today)
            sync_path(self._folder)
        finally:
            unfinished.unlink(missing_ok=True)
        for old in self.all()[KEPT:]:
            old.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all backups and damaged files, which may contain erased content."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _today(self) -> Path:
        return self._folder / f"palaver-{_utc_day()}.db"


def stamp() -> str:
    """Return the current UTC day and seconds since midnight, for a file name. Example: `2026-11-24-03600`."""
    return f"{_utc_day()}-{now() // 1000 % 86_400:05}"


def _utc_day() -> str:
    return show_instant(now())[:10]
