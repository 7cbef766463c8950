"""Projects: root folder, and identity among projects of the same name."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

MNEMONICS: Final = ".mnemonics"
"""Folder of a project's memory files."""
WORKTREE: Final = re.compile(r"[/\\]\.(?:claude[/\\])?worktrees[/\\].*")
"""End of the paths that agents give to worktrees of a repository."""
_CONFIG_MAX: Final = 1_000_000
_SCP: Final = re.compile(r"(?:[^@/:]+@)?(?P<host>[^@/:]{2,}):(?P<path>.+)")
"""Address `git@host:path`, as git and ssh write it; a single letter before the colon is a drive."""


def root_of(folder: Path) -> Path:
    """Return the nearest parent folder with memory files or a repository; the folder itself without any."""
    here = Path(WORKTREE.sub("", str(folder))) if not folder.exists() else folder
    here = here.resolve()
    return next((each for each in (here, *here.parents) if _marked(each)), here)


def identity_of(root: Path) -> str:
    """Return the identity of a project: its git remote as `host/path`, else the path of its repository.

    All worktrees and all clones of one remote are one project. The remote is read from the git configuration of the
    folder. `git clone` writes that file on this machine, and no commit can change it, so a repository cannot choose
    which project it is. Only who unpacks a foreign archive with a `.git` folder in it takes over a foreign choice.
    """
    git = _git_folder(root)
    if git is None:
        return str(root)
    return _remote(git) or str(git.parent if git.name == ".git" else git)


def main_worktree(root: Path) -> Path:
    """Return the folder that names a project: for a worktree, that of its repository."""
    git = _git_folder(root)
    return git.parent if git is not None and git.name == ".git" else root


def _marked(folder: Path) -> bool:
    return (folder / MNEMONICS).is_dir() or (folder / ".git").exists()


def _git_folder(root: Path) -> Path | None:
    """Return the folder that all worktrees of a repository share; None without a repository."""
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
    """Return the address of `origin`, else of the first remote, without scheme, account and password."""
    from configparser import ConfigParser, Error

    config = ConfigParser(strict=False, allow_no_value=True, interpolation=None)
    try:
        config.read_string(_read(git / "config"))
    except Error:
        return ""
    urls = {name: config[name].get("url") or "" for name in config.sections() if name.startswith('remote "')}
    return _plain(urls.get('remote "origin"') or next(filter(None, urls.values()), ""), git.parent)


def _plain(url: str, root: Path) -> str:
    try:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    except ValueError:  # not an address
        return url
    if "://" not in url:
        short = _SCP.fullmatch(url)
        host, path = (short["host"].lower(), short["path"]) if short else ("", url)
    if not host:
        return str((root / path).resolve()) if path else ""
    return f"{host}/{path.strip('/').removesuffix('.git')}"


def _read(file: Path) -> str:
    """Return the text of a small regular file; empty if there is none."""
    try:
        if not file.is_file() or file.stat().st_size > _CONFIG_MAX:
            return ""
        return file.read_text(errors="replace")
    except OSError:
        return ""
