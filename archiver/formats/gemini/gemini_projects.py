"""Folders of the projects whose conversations Gemini CLI stored.

The conversations of a project are in the folder `~/.gemini/tmp/<name>/chats`. In older versions, the name is the
SHA-256 digest of the project's path. In newer versions, `~/.gemini/projects.json` maps the path to the name, and the
file `.project_root` beside the folder `chats` contains the path.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ..json_values import json_file, mapping

_REGISTRY, _ROOT = "projects.json", ".project_root"
_ROOT_MAX = 4096


def project_folder(stored: Path, digest: str = "") -> str:
    """Return the path of the project whose conversations are below the folder `stored`.

    `digest` is the SHA-256 digest of the path, if a conversation contains it. The result is empty if no file records
    the path.
    """
    names = _registered(stored.parent.parent / _REGISTRY)
    known = _recorded(stored) or next((path for path, name in names.items() if name == stored.name), "")
    if known:
        return known
    digests = {stored.name, digest}
    return next((path for path in _paths(stored, names) if _digest(path) in digests), "")


def _paths(stored: Path, names: dict[str, object]) -> Iterator[str]:
    yield from names
    try:
        yield from filter(None, map(_recorded, sorted(stored.parent.iterdir())))
    except OSError:
        return


def _registered(path: Path) -> dict[str, object]:
    """Return the names of the registered projects by path."""
    return mapping(json_file(path).get("projects"))


def _recorded(folder: Path) -> str:
    try:
        with (folder / _ROOT).open(encoding="utf-8", errors="replace") as file:
            return file.read(_ROOT_MAX).strip()
    except OSError:
        return ""


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()
