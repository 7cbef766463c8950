"""Where Claude Code keeps its transcripts, and what each is called in the archive."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...core.report import Unsearched
from . import folders

# Beside the transcripts lie spilled tool output, notes, and logs of prompts and workflow steps.
_OTHER_FOLDERS = {"tool-results", "memory", "file-history", "todos"}
_OTHER_FILES = {"journal.jsonl", "history.jsonl"}
_UNSAFE = re.compile(r'[%\\/:*?"<>|\x00-\x1f\x7f\udc80-\udcff]')


def roots() -> list[Path]:
    """The existing `projects` folders of this user; the documented places are all looked at and united."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    homes = [Path(named).expanduser()] if named else []
    homes += [Path.home() / ".claude", Path.home() / ".config" / "claude"]
    found: dict[Path, Path] = {}
    for home in homes:
        folder = home / "projects"
        if folder.is_dir():
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def transcripts(root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
    """Sessions and sub-agents in a folder of any shape, sorted; a file given as root is itself a transcript."""
    return folders.files(root, _may_be, without=_OTHER_FOLDERS, skipped=skipped)


def keeps(path: Path, root: Path) -> bool:
    """Whether a file below a folder is none of those that lie beside the transcripts."""
    return _may_be(path.name) and _OTHER_FOLDERS.isdisjoint(path.relative_to(root).parts[:-1])


def _may_be(name: str) -> bool:
    return name.endswith(".jsonl") and name not in _OTHER_FILES


def archive_name(path: Path, root: Path) -> str:
    """`<project folder>/<session>.jsonl`; what lies deeper keeps its folders."""
    try:
        parts = list(path.relative_to(root).parts)
    except ValueError:
        parts = [path.name]
    if "projects" in parts[:2]:
        parts = parts[parts.index("projects") + 1 :]
    if len(parts) < 2:
        parts = [path.parent.name or "root", path.name]
    return "/".join(_safe(part) for part in parts)


def _safe(part: str) -> str:
    if part.strip(".") == "":
        return part.replace(".", "%2E") or "%"
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", part)


def parent_folder(path: Path) -> str:
    """The name of the session folder that a nested sub-agent's transcript lies in; empty for any other file."""
    for folder in path.parents:
        if folder.name == "subagents":
            return folder.parent.name
    return ""
