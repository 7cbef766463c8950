"""Where everything lies: one folder, moved by one variable."""

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
"""Files by which any folder is recognised as a home; nothing in a home is ever archived."""
_KEY_BYTES: Final = 32
DEMO: Final = Path(__file__).parents[1] / "archiver" / "demo"
"""Packaged sample transcripts, for users who have none yet."""


class Home(Struct, frozen=True):
    """The folder that holds all of Palaver's data. Making this value touches nothing on disk."""

    root: Path

    @classmethod
    def find(cls) -> "Home":
        """`PALAVER_HOME` if set, else the platform's data directory; raises `ConfigInvalid` for what is no whole path
        of a folder.
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
        """The one file that holds everything parsed, learned and remembered."""
        return self.root / "palaver.db"

    @property
    def archive(self) -> Path:
        """Byte-exact copies of what the agents wrote."""
        return self.root / "archive"

    @property
    def has_database(self) -> bool:
        """Whether there is a database; one of no bytes holds nothing, not even that it is new."""
        try:
            return self.database.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    @property
    def is_lost(self) -> bool:
        """Whether the copies are there and their database is not."""
        # Asked for again, because another process may just have made the one, and then the other.
        return not self.has_database and self.has_copies and not self.has_database

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever archived here."""
        return not self.has_database and not self.is_lost

    @property
    def is_read_only(self) -> bool:
        """Whether it is there, and its folder or its database may not be written to."""
        if not os.access(self.root, os.W_OK):
            return self.root.is_dir()
        return os.access(self.database, os.F_OK) and not os.access(self.database, os.W_OK)

    @property
    def has_copies(self) -> bool:
        """Whether anything was archived here, even if its database is gone."""
        return any(path.is_file() for path in self.archive.glob("[!.]*/**/*"))

    @property
    def tombstone_file(self) -> Path:
        """The file with the tombstones of deletions, beside the copies, so that it outlives the database."""
        return self.archive / TOMBSTONE_FILE

    @property
    def numbers(self) -> Path:
        """Up to where ids were given; beside the copies, too."""
        return self.archive / ".given"

    @property
    def changes(self) -> Path:
        """The number of the last committed change, beside the copies."""
        return self.archive / ".changes"

    @property
    def backups(self) -> Path:
        """Daily copies of the database, and damaged files that were replaced."""
        return self.root / "backups"

    @property
    def index(self) -> Path:
        """Derived; may be deleted at any time."""
        return self.root / "index"

    @property
    def log(self) -> Path:
        """What the background archiver did lately: numbers and problems, never what was said."""
        return self.root / "watch.log"

    @property
    def config(self) -> Path:
        """The settings; need not exist."""
        return self.root / "config.toml"

    @property
    def templates(self) -> Path:
        """The user's own templates, each replacing the packaged one of the same name."""
        return self.root / "templates"

    @property
    def key_file(self) -> Path:
        """What no backup may lack: without it, what was forgotten is not known again."""
        return self.root / "redaction.key"

    def key(self) -> bytes:
        """32 random bytes, made once for the whole archive: they tell placeholders of secrets apart, and what was
        forgotten is known by them.

        Who has them can try guesses on a placeholder. Losing them gives the same secrets other placeholders, and where
        something was forgotten nothing is archived until they are restored: `KeyLost`.
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
        """Raises `StoreMissing` where there is no database."""
        if not self.has_database:
            raise StoreMissing(self.root, copies=self.has_copies)

    def check_not_lost(self) -> None:
        """Raises `StoreMissing` where a database is gone: a new one would not tell that there was another."""
        if self.is_lost:
            raise StoreMissing(self.root, copies=True)

    def check_writable(self) -> None:
        """Raises `StoreReadOnly` where it may only be read."""
        if self.is_read_only:
            raise StoreReadOnly(self.root)

    def make(self) -> None:
        """Create the folder, closed to everyone else; raises `ConfigInvalid` where that is impossible.

        What its owner may only read stays so: raises `StoreReadOnly`.
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
        """`make` it for those who read and write, unless it is there and may only be read: then it is left as it is."""
        if not self.is_read_only:
            self.make()


def is_home(folder: Path) -> bool:
    """Return whether a folder is a home, of this user or of anybody; False for one that may not be read."""
    return any(os.access(folder / name, os.F_OK) for name in MARKERS)


def home_of(path: Path) -> Path | None:
    """Return the home that a path is, or in whose archive it is; None for any other path."""
    if is_home(path):
        return path
    return next(
        (each.parent for each in (path, *path.parents) if each.name == "archive" and is_home(each.parent)), None
    )


def _write_key(path: Path) -> None:
    import secrets  # with tempfile a good part of what every command would load
    import tempfile

    descriptor, beside = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        sync(file)
    try:
        if path.exists() and path.stat().st_size != _KEY_BYTES:
            path.unlink()
        os.link(beside, path)  # unlike a renaming, it takes nothing from who was faster
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
