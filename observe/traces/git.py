"""Git, asked in a process of its own. It only reads, runs nothing that a repository configures, and uses no network."""

import os
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

_SECONDS = 60
_QUIET = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "core.quotePath=false")
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_EXTERNAL_DIFF")
"""What a hook's environment says about another repository than the one that is asked about."""


class Repository(Struct, frozen=True):
    """A working tree: its own folder, also where it is one of several worktrees of a repository."""

    root: Path

    @classmethod
    def of(cls, folder: Path) -> "Repository | None":
        """The working tree that a folder lies in; None where there is none, or no git."""
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        said = _run(folder, "rev-parse", "--show-toplevel")
        return cls(Path(said.removesuffix("\n"))) if said else None

    def ask(self, command: str, *arguments: str, paths: tuple[str, ...] = ()) -> str:
        """What git answers; empty where it refuses. Paths are literal and stand after `--`: none can be an option."""
        unfiltered = self._unfiltered()
        if unfiltered is None:
            return ""
        return _run(self.root, *unfiltered, "--literal-pathspecs", command, *arguments, "--", *paths) or ""

    def _unfiltered(self) -> list[str] | None:
        """Options under which no filter runs that a repository configures for files of its working tree.

        None where one has a name that no option can say.
        """
        listed = _run(self.root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
        filters = {name.rpartition(".")[0] for name in listed.split("\0") if name}
        if any("=" in name for name in filters):
            return None
        settings = [f"{name}.{told}" for name in sorted(filters) for told in ("clean=", "process=", "required=false")]
        return [option for setting in settings for option in ("-c", setting)]

    def name_of(self, file: Path) -> str:
        """The file's path within the tree, as git writes it."""
        return file.relative_to(self.root).as_posix()


def _run(folder: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    environment = {name: value for name, value in os.environ.items() if name not in _INHERITED}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        ran = subprocess.run(
            [program, *_QUIET, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.decode("utf-8", "replace") if ran.returncode == 0 else None
