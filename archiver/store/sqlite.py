"""SQLite settings of the store: page checksums, supported versions, and translation of errors."""

import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw

from ...core.errors import StoreBusy, StoreCorrupt, StoreError, ValueRefused
from ...core.home import Home

REPAIR_HINT: Final = "Run `palaver fsck --repair` to save every row that can still be read."
PAGE_BYTES: Final = 4_096
CHECKSUM_BYTES: Final = 8
"""Bytes that the checksum VFS reserves at the end of each page."""
BUSY_MS: Final = 30_000
_FULL: Final = 64 * 1024
"""Bytes of free space below which a disk counts as full. A reader needs 32 KiB for the index of the log."""
_FULL_HINT: Final = "Free some space, then try again. With PALAVER_READ_ONLY=1, you can search meanwhile."
_NO_REASON: Final = {"", "not an error"}
_WAL_SAFE: Final = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""SQLite versions that fixed the WAL-reset bug, one per release branch (https://sqlite.org/wal.html)."""


def connect(name: str, flags: int) -> apsw.Connection:
    """Open a file with SQLite's checksum VFS (https://sqlite.org/cksumvfs.html), which apsw's wheels contain.

    Loading the VFS takes 0.4 ms and makes it the default VFS of this process. Files without checksums stay unchanged.
    """
    if "cksmvfs" not in apsw.vfs_names():
        with closing(apsw.Connection(":memory:")) as loader:
            loader.enable_load_extension(True)
            try:
                loader.load_extension(str(Path(apsw.__file__).parent / "sqlite_extra_binaries" / "cksumvfs"))
            except apsw.ExtensionLoadingError as error:
                raise StoreError(
                    f"apsw has no checksum extension: {error}", hint="Install apsw from its wheel on PyPI."
                ) from error
    return apsw.Connection(name, flags=flags)


def has_log(path: Path) -> bool:
    """Return whether a database has a non-empty write-ahead log."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def sqlite_version() -> str:
    """Return the version of the SQLite library."""
    return apsw.sqlite_lib_version()


def is_wal_safe() -> bool:
    """Return whether this SQLite version has the fix of the WAL-reset bug, which loses committed rows."""
    return _wal_is_safe(sqlite_version())


def _wal_is_safe(version: str) -> bool:
    numbers = tuple(int(part) for part in version.split("."))
    return numbers >= _WAL_SAFE[0] or any(numbers[:2] == safe[:2] and numbers >= safe for safe in _WAL_SAFE[1:])


def corrupt(path: Path, reason: str) -> StoreCorrupt:
    """Return the error for a damaged database."""
    return StoreCorrupt(f"{path}: {reason}", hint=REPAIR_HINT)


@contextmanager
def translated_errors(path: Path) -> Generator[None]:
    """Translate SQLite's errors to Palaver's errors. A busy database is never reported as damaged.

    The block must contain only calls of SQLite, because every `ValueError` in it becomes a `ValueRefused`.
    """
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusy(
            f"{path} stayed locked for {BUSY_MS // 1000} s", hint="Another Palaver process is writing. Try again later."
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        Home(path.parent).check_writable()
        raise _failed(path, error, "Check its owner and permissions.") from error
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise corrupt(path, str(error)) from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            raise corrupt(path, "a page does not match its checksum") from error
        raise _failed(path, error, "Check the disk and its free space, then try again.") from error
    except (OverflowError, ValueError) as error:
        raise ValueRefused(f"a value cannot be stored: {error}", hint="Please report which agent wrote it.") from error
    except apsw.Error as error:
        raise _failed(path, error, "Check free space and permissions, then try again.") from error


def _failed(path: Path, error: apsw.Error, hint: str) -> StoreError:
    """Return the error for a failed operation.

    SQLite describes a full disk differently in each operation, even as `not an error`.
    """
    with suppress(OSError):
        if isinstance(error, apsw.FullError) or shutil.disk_usage(path.parent).free < _FULL:
            return StoreError(f"{path}: the disk is full", hint=_FULL_HINT)
    reason = str(error)
    if reason in _NO_REASON:
        reason = f"SQLite reports {type(error).__name__} ({getattr(error, 'extendedresult', 0)})"
    return StoreError(f"{path}: {reason}", hint=hint)
