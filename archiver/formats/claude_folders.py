"""Where Claude Code keeps its transcripts, and what each is called in the archive."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

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


def transcripts(root: Path) -> Iterator[Path]:
    """Sessions and sub-agents in a folder of any shape, sorted; a file given as root is itself a transcript."""
    if root.is_file():
        yield root
        return
    yield from _walk(root, set())


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    try:
        state = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        _log.warning("passed over %s: %s", os.fsencode(folder), error.strerror)
        return
    # A folder reached twice is a loop of links, or would be archived twice.
    if (state.st_dev, state.st_ino) in seen:
        return
    seen.add((state.st_dev, state.st_ino))
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:
            _log.warning("passed over %s: %s", os.fsencode(path), error.strerror)
            continue
        if is_folder and entry.name not in _OTHER_FOLDERS:
            yield from _walk(path, seen)
        elif is_file and path.suffix == ".jsonl" and entry.name not in _OTHER_FILES:
            yield path


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
