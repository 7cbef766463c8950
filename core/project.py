"""Projects, with their root folder and an identity that distinguishes projects of the same name."""

import re
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import urlsplit

from .text import nfc

MNEMONICS: Final = ".mnemonics"
"""Name of the folder with a project's memory files."""
_HOME: Final = r"(?:/root|.*[/\\](?:home|Users)[/\\][^/\\]+)"
_AGENT_FOLDER: Final = re.compile(
    rf"(?P<folder>{_HOME}[/\\](?:\.(?!claude[/\\])[^/\\]+[/\\]worktrees|conductor[/\\]workspaces|worktrees)[/\\])"
    r"(?P<first>[^/\\]+)(?P<second>[/\\][^/\\]+)"
)
"""Pattern for worktrees in a user's home, such as `~/.codex/worktrees/ID/REPO` and `~/.cursor/worktrees/REPO/ID`."""
_ID: Final = re.compile(r"[0-9a-f-]{4,}|\d+")
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


def is_in_project(names: Collection[str], project: str, *folders: str) -> bool:
    """Return whether one of the names is a project's name, one of its working folders, or a parent of such a folder."""
    paths = [PurePath(each) for folder in folders for each in working_folders(folder)]
    known = {nfc(project), *(str(above) for path in paths for above in (path, *path.parents))}
    return any(nfc(name.rstrip("/") or name) in known for name in names if name)


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
