"""Read-only git commands. They do not run filters or hooks of the repository, and do not use the network."""

import os
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

_SECONDS = 60
_QUIET = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "core.quotePath=false")
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_EXTERNAL_DIFF")
"""Environment variables that git sets for hooks and that would redirect a command to another repository."""


class Repository(Struct, frozen=True):
    """Working tree of a git repository, including linked worktrees."""

    root: Path

    @classmethod
    def of(cls, folder: Path) -> "Repository | None":
        """Return the working tree that contains a folder. Return None if there is none or git is not installed."""
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        output = _run(folder, "rev-parse", "--show-toplevel")
        return cls(Path(output.removesuffix("\n"))) if output else None

    def run(self, command: str, *arguments: str, paths: tuple[str, ...] = ()) -> str:
        """Return the output of a git command, or an empty string if it fails.

        Paths are literal and follow `--`, so git never parses a path as an option.
        """
        unfiltered = self._unfiltered()
        if unfiltered is None:
            return ""
        return _run(self.root, *unfiltered, "--literal-pathspecs", command, *arguments, "--", *paths) or ""

    def _unfiltered(self) -> list[str] | None:
        """Return options that disable the configured filters, or None if a filter name cannot be disabled."""
        listed = _run(self.root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
        filters = {name.rpartition(".")[0] for name in listed.split("\0") if name}
        if any("=" in name for name in filters):
            return None
        settings = [
            f"{name}.{output}" for name in sorted(filters) for output in ("clean=", "process=", "required=false")
        ]
        return [option for setting in settings for option in ("-c", setting)]

    def relative_path(self, file: Path) -> str:
        """Return the path of a file within the tree, in the format of git."""
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
