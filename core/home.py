"""The home: one folder with all data. The variable PALAVER_HOME contains its path."""

import os
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from .durability import sync
from .errors import ConfigInvalid, StoreMissing, StoreReadOnly

TOMBSTONE_FILE: Final = ".forgotten"
"""Name of the tombstone file. Files with this name and a suffix are left over from interrupted writes."""
MARKERS: Final = frozenset({"palaver.db", "redaction.key"})
"""Names of files that identify a folder as a Palaver home. Files in a home are never archived."""
_KEY_BYTES: Final = 32
DEMO: Final = Path(__file__).parents[1] / "archiver" / "demo"
"""Folder of sample transcripts in the package, for users who have no transcripts yet."""
DEMO_FOLDER: Final = "demo"
"""Name of the folder with the demo home, inside the user's home."""
_NOT_READ_ONLY: Final = frozenset({"", "0", "f", "false", "n", "no", "off"})


def is_read_only_mode() -> bool:
    """Return whether PALAVER_READ_ONLY is set to a value other than `0`, `no`, `false` and similar words.

    The shell script of the hooks, `palaver-hook.sh`, applies the same rule.
    """
    return os.environ.get("PALAVER_READ_ONLY", "").lower() not in _NOT_READ_ONLY


class Home(Struct, frozen=True):
    """Folder with all of Palaver's data. Creating an instance does not access the disk.

    If `read_only` is true, this process changes no byte in the folder, even if it has the permission.
    """

    root: Path
    read_only: bool = False

    @classmethod
    def find(cls) -> "Home":
        """Return the home: `PALAVER_HOME` if set, otherwise the platform's data directory.

        It is read-only if PALAVER_READ_ONLY is set.

        Raises:
            ConfigInvalid: The variable is not the absolute path of a folder.
        """
        named = os.environ.get("PALAVER_HOME")
        if named is None or named == "":
            return cls.default()
        try:
            path = Path(named).expanduser()
        except RuntimeError:
            raise ConfigInvalid(f"PALAVER_HOME names an unknown user: {named}", hint="Use an absolute path.") from None
        if not path.is_absolute():
            raise ConfigInvalid(f"PALAVER_HOME is not an absolute path: {named}", hint="Use an absolute path.")
        if path.is_file():
            raise ConfigInvalid(f"PALAVER_HOME is a file: {path}", hint="Set it to a folder that you can write to.")
        return cls(path, is_read_only_mode())

    @classmethod
    def default(cls) -> "Home":
        """Return the home in the platform's data directory."""
        return cls(_data_directory() / "palaver", is_read_only_mode())

    @property
    def database(self) -> Path:
        """Database with all parsed, extracted and remembered content."""
        return self.root / "palaver.db"

    @property
    def http_token(self) -> Path:
        """File with the bearer token of `palaver mcp --http`."""
        return self.root / "http_token"

    @property
    def archive(self) -> Path:
        """Folder of the raw archive: byte-exact copies of transcripts."""
        return self.root / "archive"

    @property
    def has_database(self) -> bool:
        """True if the database exists and is not an empty file."""
        try:
            return self.database.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False

    @property
    def is_lost(self) -> bool:
        """True if raw copies exist but their database is missing."""
        # Check again, because another process may have created the database and a raw copy in between.
        return not self.has_database and self.has_copies and not self.has_database

    @property
    def is_new(self) -> bool:
        """True if this home has never archived anything."""
        return not self.has_database and not self.is_lost

    @property
    def is_read_only(self) -> bool:
        """True in read-only mode, or if the existing folder or its database is not writable."""
        if self.read_only:
            return True
        if not os.access(self.root, os.W_OK):
            return self.root.is_dir()
        return os.access(self.database, os.F_OK) and not os.access(self.database, os.W_OK)

    @property
    def has_copies(self) -> bool:
        """True if raw copies exist, even without a database."""
        return any(path.is_file() for path in self.archive.glob("[!.]*/**/*"))

    @property
    def tombstone_file(self) -> Path:
        """File with tombstones of deletions, stored beside the raw copies to survive the loss of the database."""
        return self.archive / TOMBSTONE_FILE

    @property
    def numbers(self) -> Path:
        """File with the highest IDs issued, so that a rebuilt database never reuses an ID."""
        return self.archive / ".given"

    @property
    def changes(self) -> Path:
        """File with the number of the last committed change."""
        return self.archive / ".changes"

    @property
    def backups(self) -> Path:
        """Folder with daily backups of the database, and with the damaged files that Palaver replaced."""
        return self.root / "backups"

    @property
    def index(self) -> Path:
        """Folder of the search index. The index is derived data and can be deleted at any time."""
        return self.root / "index"

    @property
    def log(self) -> Path:
        """Log of the background archiver. It contains numbers and problems, never text of conversations."""
        return self.root / "watch.log"

    @property
    def ended_sessions(self) -> Path:
        """Queue of sessions that ended and are not archived yet, written by a hook."""
        return self.root / "ended-sessions"

    @property
    def config(self) -> Path:
        """Optional settings file."""
        return self.root / "config.toml"

    @property
    def templates(self) -> Path:
        """Folder with the user's templates. Each template replaces the packaged template of the same name."""
        return self.root / "templates"

    @property
    def key_file(self) -> Path:
        """File with the key for hashes of deleted items. Include it in every backup."""
        return self.root / "redaction.key"

    def key(self) -> bytes:
        """Return the archive's key of 32 random bytes for hashes of secrets and deleted items.

        The key is created once. Anyone with the key can check whether a guessed text is a redacted secret. If the key
        is lost, secrets get new placeholders. If the archive also has tombstones, nothing is archived until the key is
        restored (`KeyLost`). In read-only mode, a missing key is replaced by a temporary key.
        """
        path = self.key_file
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) == _KEY_BYTES:
            return key
        if self.read_only:
            return os.urandom(_KEY_BYTES)
        _write_key(path)
        return path.read_bytes()

    def check(self) -> None:
        """Raise `StoreMissing` if the database does not exist."""
        if not self.has_database:
            raise StoreMissing(self.root, copies=self.has_copies)

    def check_not_lost(self) -> None:
        """Raise `StoreMissing` if raw copies exist but their database is missing."""
        if self.is_lost:
            raise StoreMissing(self.root, copies=True)

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the home is read-only."""
        if self.is_read_only:
            raise StoreReadOnly(self.root)

    def make(self) -> None:
        """Create the folder, accessible only to its owner.

        Raises:
            ConfigInvalid: The folder cannot be created.
            StoreReadOnly: The folder is read-only.
        """
        self.check_writable()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(self.root.stat().st_mode & 0o700)
        except OSError as error:
            reason = "a file has this name" if isinstance(error, FileExistsError) else error.strerror
            done = "written to" if self.root.is_dir() else "created"
            raise ConfigInvalid(
                f"{self.root} cannot be {done}: {reason}", hint="Set PALAVER_HOME to a folder that you can write to."
            ) from None

    def prepare(self) -> None:
        """Create the folder if it is missing. A read-only folder stays unchanged."""
        if not self.is_read_only:
            self.make()


def is_home(folder: Path) -> bool:
    """Return whether a folder is a home of any user. The result is False for an unreadable folder."""
    return any(os.access(folder / name, os.F_OK) for name in MARKERS)


def home_of(path: Path) -> Path | None:
    """Return the home at a path, or the home whose archive contains the path. Return None for other paths."""
    if is_home(path):
        return path
    return next(
        (each.parent for each in (path, *path.parents) if each.name == "archive" and is_home(each.parent)), None
    )


def _write_key(path: Path) -> None:
    import secrets  # Import here, because few commands create a key.
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        sync(file)
    try:
        if path.exists() and path.stat().st_size != _KEY_BYTES:
            path.unlink()
        os.link(temporary, path)  # Unlike a rename, a link does not replace the key of another process.
    except FileExistsError:
        pass
    finally:
        Path(temporary).unlink()


def _data_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
