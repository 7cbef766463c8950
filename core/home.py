"""Home folder with all data, projects and their identity, this installation, and Palaver's own text.

The variable PALAVER_HOME contains the path of the home. The identity of a project distinguishes projects of the same
name.

The recursion guard detects Palaver's own replies and prompts in transcripts. They contain no new knowledge. If they
were indexed, search would find them in place of the original text that they quote.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection
from enum import StrEnum
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePath, PureWindowsPath
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from .command_socket import data_directory
from .errors import ConfigInvalid, StoreMissing, StoreReadOnly
from .runtime import sync
from .text import nfc

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
        return cls(Path(data_directory()).expanduser() / "palaver", is_read_only_mode())

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
    def restored(self) -> Path:
        """Record of the session files that `palaver resume` restored."""
        return self.root / "restored.json"

    @property
    def team_key(self) -> Path:
        """Key of this machine in its team. The file is missing if the machine belongs to no team."""
        return self.root / "team" / "device.key"

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


DISTRIBUTION: Final = "palaver-archive"
"""Name on the package index. The command and the import name are `palaver`."""


def install_command(requirement: str, *, upgrade: bool = False) -> str:
    """Return the shell command that installs a requirement into this environment.

    The command uses the current interpreter, because the `pip` of a shell may belong to another environment.
    Environments created by uv do not contain pip, so uv installs packages into them.
    """
    python = shlex.quote(sys.executable)
    installer = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{installer} {'--upgrade ' if upgrade else ''}{shlex.quote(requirement)}"


def extra_command(extra: str) -> str:
    """Return the shell command that installs an optional extra of Palaver."""
    return install_command(f"{DISTRIBUTION}[{extra}]")


def upgrade_hint() -> str:
    """Return a sentence with the command that upgrades Palaver."""
    return f"Upgrade Palaver: run `{install_command(DISTRIBUTION, upgrade=True)}`, or update your checkout."


MNEMONICS: Final = ".mnemonics"
"""Name of the folder with a project's memory files."""
_HOME: Final = r"(?:/root|.*[/\\](?:home|Users)[/\\][^/\\]+)"
_AGENT_FOLDER: Final = re.compile(
    rf"(?P<folder>{_HOME}[/\\](?:\.(?!claude[/\\])[^/\\]+[/\\]worktrees|conductor[/\\]workspaces|worktrees)[/\\])"
    r"(?P<first>[^/\\]+)(?P<second>[/\\][^/\\]+)"
)
"""Pattern for worktrees in a user's home, such as `~/.codex/worktrees/ID/REPO` and `~/.cursor/worktrees/REPO/ID`."""
_ID: Final = re.compile(r"[0-9a-f-]{4,}|\d+")
_DRIVE: Final = re.compile(r"[A-Za-z]:[/\\]|\\\\[^\\]")
_INSIDE: Final = re.compile(r"(?P<repository>.+?)[/\\](?:\.worktrees|\.[^/\\]+[/\\]worktrees)[/\\]")
"""Pattern for worktrees inside their repository, such as `REPO/.claude/worktrees/fix-1`."""
_BESIDE: Final = re.compile(r"(?P<repository>(?:.*?[/\\])?[^/\\.][^/\\]*?)[._-]worktrees?[/\\]+[^/\\]")
"""Pattern for worktrees beside their repository, such as `REPO.worktrees/fix-1` and `REPO-worktrees/fix-1`."""
_CONFIG_MAX: Final = 1_000_000
_SCP: Final = re.compile(r"(?:[^@/:]+@)?(?P<host>[^@/:]{2,}):(?P<path>.+)")
"""Pattern for addresses such as `git@host:path`. A single letter before the colon is a Windows drive, not a host."""


def repository_folder(folder: str) -> str:
    """Return the folder of the repository to which a worktree belongs by its path. Return other folders unchanged.

    The folder need not exist, and can be of another system. If only the name of the repository is known, as below the
    own folder of an agent, the result is a folder with this name.
    """
    folder = nfc(folder)
    if own := _AGENT_FOLDER.match(folder):
        return f"{own['folder']}{own['first']}{own['second'] if _ID.fullmatch(own['first']) else ''}"
    for pattern in (_INSIDE, _BESIDE):
        if found := pattern.match(folder):
            folder = found["repository"]
    return folder


def project_name(folder: str) -> str:
    """Return the name of the project in a folder: the last name in the path of its repository or of the folder."""
    return next(filter(None, reversed(re.split(r"[/\\]+", repository_folder(folder)))), "")


def working_folders(folder: str) -> tuple[str, ...]:
    """Return a working folder, and if it is in a worktree by its path, also the folder of the repository."""
    return tuple(dict.fromkeys((nfc(folder), repository_folder(folder)))) if folder else ()


def is_windows_path(folder: str) -> bool:
    r"""Return whether a folder has a full path of Windows, such as `D:\work` or `d:/work`."""
    return _DRIVE.match(folder) is not None


def folder_path(folder: str) -> PurePath:
    """Return the path of a folder of any system. Paths of Windows are equal in any case and with both slashes."""
    return PureWindowsPath(folder) if is_windows_path(folder) else PurePath(folder)


def is_in_project(names: Collection[str], project: str, *folders: str) -> bool:
    """Return whether one of the names is a project's name, one of its working folders, or a parent of such a folder."""
    paths = [folder_path(name) for folder in folders for name in working_folders(folder)]
    above = {parent for path in paths for parent in (path, *path.parents)}
    return any(nfc(name.rstrip("/")) == nfc(project) or folder_path(nfc(name)) in above for name in names if name)


def root_of(folder: Path) -> Path:
    """Return the nearest folder that contains memory files or a repository: this folder or one of its parents.

    If there is none, return this folder.
    """
    here = Path(repository_folder(str(folder))) if not folder.exists() else folder
    here = here.resolve()
    return next((each for each in (here, *here.parents) if is_root(each)), here)


def identity_of(root: Path) -> str:
    """Return the identity of a project: its git remote as `host/path`, or else the path of its repository or folder.

    All worktrees and all clones of one remote are one project. The remote is read from the git configuration of the
    folder. `git clone` writes this file locally and no commit can change it, so a repository cannot choose its
    identity. The only exception is an archive that was unpacked together with its `.git` folder.
    """
    git = _git_folder(root)
    if git is None:
        return nfc(str(root))
    return nfc(_remote(git) or str(git.parent if git.name == ".git" else git))


def main_worktree(root: Path) -> Path:
    """Return the main folder of a project. If `root` is a git worktree, this is the folder of the main worktree."""
    git = _git_folder(root)
    return git.parent if git is not None and git.name == ".git" else root


def branch_of(folder: Path) -> str:
    """Return the branch that is checked out in the repository of a folder, or an empty string."""
    dot = root_of(folder) / ".git"
    own = Path(_read(dot).removeprefix("gitdir:").strip()) if dot.is_file() else dot
    return _read(dot.parent / own / "HEAD").strip().partition("refs/heads/")[2]


def is_root(folder: Path) -> bool:
    """Return whether a folder contains memory files or a repository."""
    return (folder / MNEMONICS).is_dir() or (folder / ".git").exists()


def _git_folder(root: Path) -> Path | None:
    """Return the folder shared by all worktrees of a repository, or None if there is no repository."""
    dot = root / ".git"
    if dot.is_dir():
        return dot
    named = _read(dot).removeprefix("gitdir:").strip()
    if not named:
        return None
    own = (root / named).resolve()
    shared = _read(own / "commondir").strip()
    return (own / shared).resolve() if shared else own


def _remote(git: Path) -> str:
    """Return the address of `origin` or of the first remote, without scheme, account and password."""
    from configparser import ConfigParser, Error

    config = ConfigParser(strict=False, allow_no_value=True, interpolation=None)
    try:
        config.read_string(_read(git / "config"))
    except Error:
        return ""
    urls = {name: config[name].get("url") or "" for name in config.sections() if name.startswith('remote "')}
    return _normalized(urls.get('remote "origin"') or next(filter(None, urls.values()), ""), git.parent)


def _normalized(url: str, root: Path) -> str:
    try:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    except ValueError:  # The text is not an address.
        return url
    if "://" not in url:
        short = _SCP.fullmatch(url)
        host, path = (short["host"].lower(), short["path"]) if short else ("", url)
    if not host:
        return str((root / path).resolve()) if path else ""
    return f"{host}/{path.strip('/').removesuffix('.git')}"


def _read(file: Path) -> str:
    """Return the text of a small regular file, or an empty text if the file does not exist."""
    try:
        if not file.is_file() or file.stat().st_size > _CONFIG_MAX:
            return ""
        return file.read_text(errors="replace")
    except OSError:
        return ""


OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Prefix of every prompt that Palaver sends to a model or an agent."""

OWN_RUN = "PALAVER_OWN_RUN"
"""Environment variable that Palaver sets for agents that it starts. If it is set, Palaver exits at once."""

OWN_FOLDER = "palaver-own-run-"
"""Prefix of the names of the empty folders in which Palaver starts agents for extraction."""

_NAME = "palaver"
_TOOL = re.compile(r"(?:mcp_+)?(?:plugin_)?palaver(?:_palaver)?[_./:-]+\w")
_QUERIES = "search|show|read|ask|recall|memories|context|export"
_COMMAND = re.compile(
    rf"(?:\S*/)?(?:(?:uvx|uv run|pipx run|python3?(?:\.\d+)? -m) )?(?:\S*/)?palaver (?:{_QUERIES})\b(?!.*(?:&&|;|\n))",
    re.DOTALL,
)
_MARK = "recalled(?:-[0-9]+)?"
_FENCED = re.compile(rf"^[ \t]*<({_MARK})>[ \t]*\n.*?^[ \t]*</\1>[ \t]*$", re.MULTILINE | re.DOTALL)
_BEGUN = re.compile(rf"^[ \t]*<{_MARK}>[ \t]*$.*", re.MULTILINE | re.DOTALL)
_ENDED = re.compile(rf"\A.*?^[ \t]*</{_MARK}>[ \t]*$", re.MULTILINE | re.DOTALL)
_FENCE = "recalled"


class Own(StrEnum):
    """Reason why a line counts as Palaver's own output. Such lines are skipped and counted by reason."""

    FOLDER = "own-folder"
    """Line written while the working folder of the agent was inside the Palaver home."""
    RUN = "own-run"
    """Line of an exchange with a prompt from Palaver, or of a sub-agent that only called Palaver."""
    TOOL = "own-tool"
    """Call of a Palaver tool, or its result."""
    RECALLED = "own-recalled"
    """Line that contains only text returned by Palaver."""


def is_suspect(text: str, tool: str) -> bool:
    """Return whether a text or the name of its tool contains `palaver` or `recalled`, and may thus come from Palaver.

    This quick check rejects almost all texts.
    """
    return _NAME in text or _FENCE in text or _NAME in tool


def is_own_prompt(text: str) -> bool:
    """Return whether Palaver sent this prompt."""
    return text.startswith(OWN_PROMPT_MARK)


def is_own_folder(folder: str) -> bool:
    """Return whether Palaver created this folder for an agent that it started."""
    return OWN_FOLDER in folder and PurePath(folder).name.startswith(OWN_FOLDER)


@lru_cache(maxsize=1024)
def is_own_tool(name: str) -> bool:
    """Return whether a tool belongs to Palaver's server, such as `mcp__palaver__search` of Claude Code."""
    return _TOOL.match(name) is not None


def is_own_command(command: str) -> bool:
    """Return whether a shell command only queries Palaver."""
    return "palaver" in command and _COMMAND.match(command) is not None


def without_recalled(text: str, *, shortened: bool) -> str:
    """Return the text without Palaver's replies, which lines such as `<recalled-7>` and `</recalled-7>` enclose.

    A `shortened` text may have lost one of these markers. The text before a single closing marker, or after a single
    opening marker, is then removed. Both markers of a reply have the same random number, so other markers in the text
    of a reply have no effect.
    """
    if _FENCE not in text:
        return text
    text = _FENCED.sub("", text)
    if shortened:
        text = _ENDED.sub("", _BEGUN.sub("", text))
    return text.strip()
