"""Backups: one verified copy of the database a day, the newest seven."""

import shutil
from pathlib import Path
from typing import Final

from ...core.clock import now, show_day
from ...core.durability import sync_path
from ...core.errors import StoreCorrupt, StoreError
from ...core.home import Home
from .database import Database

KEPT: Final = 7


class Backups:
    """The folder of backups. Files that were put aside as damaged are kept there too, under other names."""

    def __init__(self, home: Home) -> None:
        self._folder = home.backups

    def all(self) -> list[Path]:
        """Return the backups, newest first."""
        return sorted(self._folder.glob("palaver-*.db"), reverse=True)

    @property
    def is_due(self) -> bool:
        """True if today (UTC) has none."""
        return not self._today.exists()

    def make(self, database: Database) -> None:
        """Copy the database, verify the copy, then give it today's name and remove all but the newest seven.

        The caller holds the lease `BACKUP`, so an unfinished copy is that of a killed process. Raises `StoreError`
        where there is no room, and `StoreCorrupt` where the database or the copy is damaged.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(self._folder).free < 2 * database.path.stat().st_size:
            raise StoreError("not enough free space for a backup of the database", hint="Free some space.")
        beside = self._folder / "unfinished"
        try:
            beside.unlink(missing_ok=True)
            beside.touch(mode=0o600)
            database.copy_to(beside)
            if problems := Database.problems(beside):
                raise StoreCorrupt(f"{beside}: {problems[0]}", hint="Check the disk.")
            sync_path(beside)
            beside.replace(self._today)
            sync_path(self._folder)
        finally:
            beside.unlink(missing_ok=True)
        for old in self.all()[KEPT:]:
            old.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove every backup and every damaged file that was put aside: they may hold what was erased."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _today(self) -> Path:
        return self._folder / f"palaver-{show_day(now())}.db"


def stamp() -> str:
    """Return the present day and second, for the name of a file that is kept."""
    return f"{show_day(now())}-{now() // 1000 % 86_400:05}"
