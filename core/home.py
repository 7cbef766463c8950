"""The home: one folder with all data, set by PALAVER_HOME."""

import os
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from .durability import sync
from .errors import ConfigInvalid, StoreMissing, StoreReadOnly

TOMBSTONE_FILE: Final = ".forgotten"
"""Name of the tombstone file. Files with longer names are left from interrupted writes."""
MARKERS: Final = frozenset({"palaver.db", "redaction.key"})
"""Files that identify a folder as a home; nothing in a home is ever archived."""
_KEY_BYTES: Final = 32
DEMO: Final = Path(__file__).parents[1] / "archiver" / "demo"
"""Packaged sample transcripts, for users who have none yet."""


class Home(Struct, frozen=True):
    """Folder with all of Palaver's data. Creating this value does not touch the disk."""

    root: Path

    @classmethod
    def find(cls) -> "Home":
        """Return the home: `PALAVER_HOME` if set, else the platform's data directory.

        Raises:
            ConfigInvalid: if the variable is no absolute path of a folder.
        """
        named = os.environ.get("PALAVER_HOME")
        if named is None or named == "":
            return cls(_data_directory() / "palaver")
        try:
            path = Path(named).expanduser()
        except RuntimeError:
            raise ConfigInvalid(f"PALAVER_HOME names an unknown user: {named}", hint="Give the whole path.") from None
        if not path.is_absolute():
            raise ConfigInvalid(f"PALAVER_HOME is not an absolute path: {named}", hint="Give the whole path.")
        if path.is_file():
            raise ConfigInvalid(f"PALAVER_HOME is a file: {path}", hint="Set it to a folder you may write to.")
        return cls(path)

    @property
    def database(self) -> Path:
        """Database with everything parsed, extracted and remembered."""
        return self.root / "palaver.db"

    @property
    def archive(self) -> Path:
        """Raw archive: byte-exact copies of transcripts."""
        return self.root / "archive"

    @property
    def has_database(self) -> bool:
        """True if there is a database with content."""
        try:
            return self.database.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    @property
    def is_lost(self) -> bool:
        """True if raw copies exist, but their database does not."""
        # Checked again, because another process may have created the database and a raw copy in between.
        return not self.has_database and self.has_copies and not self.has_database

    @property
    def is_new(self) -> bool:
        """True if nothing was ever archived here."""
        return not self.has_database and not self.is_lost

    @property
    def is_read_only(self) -> bool:
        """True if the folder exists, and it or its database is not writable."""
        if not os.access(self.root, os.W_OK):
            return self.root.is_dir()
        return os.access(self.database, os.F_OK) and not os.access(self.database, os.W_OK)

    @property
    def has_copies(self) -> bool:
        """True if there are raw copies, even without a database."""
        return any(path.is_file() for path in self.archive.glob("[!.]*/**/*"))

    @property
    def tombstone_file(self) -> Path:
        """Tombstones of deletions, beside the raw copies, so that they survive a lost database."""
        return self.archive / TOMBSTONE_FILE

    @property
    def numbers(self) -> Path:
        """Highest ids issued, so that a rebuilt database never reuses one."""
        return self.archive / ".given"

    @property
    def changes(self) -> Path:
        """Number of the last committed change."""
        return self.archive / ".changes"

    @property
    def backups(self) -> Path:
        """Daily copies of the database, and damaged files that were replaced."""
        return self.root / "backups"

    @property
    def index(self) -> Path:
        """Search index; derived, may be deleted at any time."""
        return self.root / "index"

    @property
    def log(self) -> Path:
        """Log of the background archiver: numbers and problems, never text of conversations."""
        return self.root / "watch.log"

    @property
    def config(self) -> Path:
        """Settings file; optional."""
        return self.root / "config.toml"

    @property
    def templates(self) -> Path:
        """User's templates, each replacing the packaged one of the same name."""
        return self.root / "templates"

    @property
    def key_file(self) -> Path:
        """Key for the hashes of deleted items; include it in every backup."""
        return self.root / "redaction.key"

    def key(self) -> bytes:
        """Return the 32 random bytes of the archive's key, created once, for hashes of secrets and deleted items.

        With the key, guesses for a redacted secret can be tested. Without it, secrets get new placeholders, and nothing
        is archived after a deletion until it is restored (`KeyLost`).
        """
        path = self.key_file
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) == _KEY_BYTES:
            return key
        _write_key(path)
        return path.read_bytes()

    def check(self) -> None:
        """Raise `StoreMissing` if there is no database."""
        if not self.has_database:
            raise StoreMissing(self.root, copies=self.has_copies)

    def check_not_lost(self) -> None:
        """Raise `StoreMissing` if the database of existing raw copies is missing."""
        if self.is_lost:
            raise StoreMissing(self.root, copies=True)

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the home is read-only."""
        if self.is_read_only:
            raise StoreReadOnly(self.root)

    def make(self) -> None:
        """Create the folder, accessible only to its owner.

        Raises:
            ConfigInvalid: if it cannot be created.
            StoreReadOnly: if it is read-only.
        """
        self.check_writable()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(self.root.stat().st_mode & 0o700)
        except OSError as error:
            reason = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror
            done = "written to" if self.root.is_dir() else "made"
            raise ConfigInvalid(
                f"{self.root} cannot be {done}: {reason}", hint="Set PALAVER_HOME to a folder you may write to."
            ) from None

    def prepare(self) -> None:
        """Create the folder, unless it exists and is read-only."""
        if not self.is_read_only:
            self.make()


def is_home(folder: Path) -> bool:
    """Return whether a folder is a home of any user; False if it may not be read."""
    return any(os.access(folder / name, os.F_OK) for name in MARKERS)


def home_of(path: Path) -> Path | None:
    """Return the home that contains a path in its archive, or that the path is; None for other paths."""
    if is_home(path):
        return path
    return next(
        (each.parent for each in (path, *path.parents) if each.name == "archive" and is_home(each.parent)), None
    )


def _write_key(path: Path) -> None:
    import secrets  # imported here, because few commands create a key
    import tempfile

    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        sync(file)
    try:
        if path.exists() and path.stat().st_size != _KEY_BYTES:
            path.unlink()
        os.link(beside, path)  # unlike a rename, it does not replace the key of another process
    except FileExistsError:
        pass
    finally:
        Path(beside).unlink()


def _data_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
