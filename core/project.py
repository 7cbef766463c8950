"""Projects, with their root folder and an identity that distinguishes projects of the same name."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

MNEMONICS: Final = ".mnemonics"
"""Name of the folder with a project's memory files."""
WORKTREE: Final = re.compile(r"[/\\]\.(?:claude[/\\])?worktrees[/\\].*")
"""Pattern for the end of a path inside an agent's folder for git worktrees, such as `/.claude/worktrees/fix-1`."""
_CONFIG_MAX: Final = 1_000_000
_SCP: Final = re.compile(r"(?:[^@/:]+@)?(?P<host>[^@/:]{2,}):(?P<path>.+)")
"""Pattern for addresses such as `git@host:path`. A single letter before the colon is a Windows drive, not a host."""


def root_of(folder: Path) -> Path:
    """Return the nearest folder that contains memory files or a repository: this folder or one of its parents.

    If there is none, return this folder.
    """
    here = Path(WORKTREE.sub("", str(folder))) if not folder.exists() else folder
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
        return str(root)
    return _remote(git) or str(git.parent if git.name == ".git" else git)


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
