"""Configuration files of clients: strict reading, atomic writing, and one backup beside each file."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...core.durability import sync, sync_path
from ...core.errors import ClientConfigUnusable

_BACKUP: Final = ".before-palaver"
"""Suffix that the name of a backup file adds to the name of the configuration file."""


def backup_of(path: Path, suffix: str = "") -> Path:
    """Return the path of a configuration file's backup.

    `suffix` separates the backups of different changes to one file, such as the server entry and the hooks.
    """
    return path.with_name(path.name + _BACKUP + suffix)


def read_config(path: Path) -> bytes | None:
    """Return the content of a configuration file, or None if it does not exist.

    Raises:
        ClientConfigUnusable: The path is not a readable regular file.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # Opening a named pipe would wait for its writer.
            raise ClientConfigUnusable(path, "not a regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ClientConfigUnusable(path, error.strerror or str(error)) from None


def read_backup(path: Path) -> bytes | None:
    """Return the content of a backup, or None if there is none. A link is none: another program made it."""
    return None if path.is_symlink() else read_config(path)


def refuse_link(backup: Path) -> None:
    """Raise `ClientConfigUnusable` if a link is at the place of a backup, whose target must not be overwritten."""
    if backup.is_symlink():
        raise ClientConfigUnusable(backup, "a link is at the place of the backup", hint="Move it away.")


def write_config(path: Path, content: bytes) -> None:
    """Replace a configuration file atomically and durably.

    If the path is a link, its target is replaced. The permissions of the file are kept.

    Raises:
        ClientConfigUnusable: The file cannot be written. The previous file is kept.
    """
    target, temporary = path, None
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".palaver", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            sync(file)
        temporary.replace(target)
        sync_path(target.parent)
    except (OSError, RuntimeError) as error:  # `resolve` raises RuntimeError for a loop of links.
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise ClientConfigUnusable(path, _reason(error)) from None


def remove_config(path: Path) -> None:
    """Delete a configuration file, or do nothing if it does not exist. If the path is a link, its target is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be deleted.
    """
    try:
        target = path.resolve()
        target.unlink(missing_ok=True)
        sync_path(target.parent)
    except (OSError, RuntimeError) as error:
        raise ClientConfigUnusable(path, _reason(error)) from None


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
