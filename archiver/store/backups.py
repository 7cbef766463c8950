"""Backups of the database. Palaver makes one verified backup per day and keeps the newest seven.

Backups are ordered by the number in their names, such as `palaver-000012-2026-11-24.db`. The number only grows, so a
clock that was wrong for some time deletes no newer backup. A file beside each backup, with the suffix `.sha256`,
contains its SHA-256 in the format of the command `sha256sum`.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...core.clock import now, show_instant
from ...core.durability import replacing, sync_path
from ...core.errors import StoreCorrupt, StoreError
from ...core.home import Home
from .database import Database

KEPT: Final = 7
_NAME: Final = re.compile(r"palaver-(?:(\d{6,})-)?(\d{4}-\d\d-\d\d)\.db")
"""Name of a backup: its number and its day. Earlier versions of Palaver wrote names without a number."""


class Backups:
    """Folder of backups.

    `salvage` and the watermark also save damaged files in this folder, under names such as
    `damaged-2026-11-24-03600.db`.
    """

    def __init__(self, home: Home) -> None:
        self._folder = home.backups

    def all(self) -> list[Path]:
        """Return the backups, the newest made first."""
        return sorted((path for path in self._folder.glob("palaver-*.db") if _NAME.fullmatch(path.name)), key=_order)[
            ::-1
        ]

    @property
    def is_due(self) -> bool:
        """True if no backup exists for the current day (UTC)."""
        return all(day_of(path) != _utc_day() for path in self.all())

    def make(self, database: Database) -> None:
        """Copy the database, verify the copy, and store its SHA-256. Keep only the newest seven backups.

        The caller must hold the lease `BACKUP`. Therefore, an existing unfinished copy comes from a killed process and
        is deleted.

        Raises:
            StoreError: There is not enough free space.
            StoreCorrupt: The database or the copy is damaged.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(self._folder).free < 2 * database.path.stat().st_size:
            raise StoreError("not enough free space for a backup of the database", hint="Free some space.")
        number = max(map(_number, self.all()), default=0) + 1
        made, unfinished = self._folder / f"palaver-{number:06}-{_utc_day()}.db", self._folder / "unfinished"
        try:
            unfinished.unlink(missing_ok=True)
            unfinished.touch(mode=0o600)
            database.copy_to(unfinished)
            if problems := Database.problems(unfinished):
                raise StoreCorrupt(f"{unfinished}: {problems[0]}", hint="Check the disk.")
            sync_path(unfinished)
            with replacing(_checksum_file(made)) as file:
                file.write(_checksum_line(unfinished, made.name))
            unfinished.replace(made)
            sync_path(self._folder)
        finally:
            unfinished.unlink(missing_ok=True)
        for old in self.all()[KEPT:]:
            old.unlink(missing_ok=True)
        for checksum in self._folder.glob("*.sha256"):
            if not checksum.with_suffix("").exists():
                checksum.unlink(missing_ok=True)

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Verify all backups, and yield the path of each damaged one with a description of the damage."""
        for path in self.all():
            try:
                if damage := _damage(path):
                    yield path, damage
            except OSError as error:
                yield path, error.strerror or str(error)

    def set_aside(self, path: Path) -> Path:
        """Rename a damaged backup, so that it is no longer verified, and return its new path."""
        kept = path.with_name(f"damaged-{path.name}")
        path.replace(kept)
        _checksum_file(path).unlink(missing_ok=True)
        return kept

    def remove(self) -> None:
        """Remove all backups and damaged files, which may contain erased content."""
        shutil.rmtree(self._folder, ignore_errors=True)


def day_of(backup: Path) -> str:
    """Return the day (UTC) on which a backup was made, as in `2026-11-24`."""
    return _order(backup)[1]


def stamp() -> str:
    """Return the current UTC day and seconds since midnight, for a file name. Example: `2026-11-24-03600`."""
    return f"{_utc_day()}-{now() // 1000 % 86_400:05}"


def _utc_day() -> str:
    return show_instant(now())[:10]


def _order(backup: Path) -> tuple[int, str]:
    """Return the number and the day of a backup. The number is 0 for a name of earlier versions."""
    match = _NAME.fullmatch(backup.name)
    return (int(match[1] or 0), match[2]) if match else (0, "")


def _number(backup: Path) -> int:
    return _order(backup)[0]


def _damage(backup: Path) -> str:
    """Return a description of the damage of a backup, or an empty text.

    Without a checksum, as written by earlier versions, SQLite's integrity check is used instead.
    """
    checksum = _checksum_file(backup)
    if not checksum.exists():
        return "its SHA-256 is missing" if _number(backup) else next(iter(Database.problems(backup)), "")
    if checksum.read_bytes() != _checksum_line(backup, backup.name):
        return "it does not match its SHA-256"
    return ""


def _checksum_file(backup: Path) -> Path:
    return backup.with_name(f"{backup.name}.sha256")


def _checksum_line(path: Path, name: str) -> bytes:
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode()
