"""Verified: which files were read and found whole, so that they are not read again while nobody touched them."""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

SETTLED_NS = 2_000_000_000
"""A file changed later than this before it was verified can change again without another time: it is not recorded."""


class Identity(NamedTuple):
    """What tells an untouched file, without reading it. `mtime` in nanoseconds."""

    device: int
    inode: int
    size: int
    mtime: int

    @classmethod
    def of(cls, path: Path | str) -> Self:
        """That of the file as it is now; raises `OSError`."""
        found = os.stat(path)  # noqa: PTH116 - a path that is a string already is not made one anew
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Verified:
    """A record of files, each by what tells which one it has to be. Made before they are looked at.

    A record that cannot be read says nothing, and where it may not be written it is done without.
    """

    def __init__(self, path: Path | None, *, only_look: bool = False) -> None:
        """Without a `path` nothing is known and nothing kept; with `only_look` nothing is kept."""
        self._path, self._only_look, self._started = path, only_look, time.time_ns()
        self._known = _read(path) if path is not None else {}

    def has(self, name: str, identity: Identity) -> bool:
        """Whether the file was found whole as it is now."""
        return self._known.get(name) == identity

    def keep(self, found: Mapping[str, Identity]) -> None:
        """Record all that were just found whole, bar those that may change again unseen. Several may do so at once."""
        settled = {name: identity for name, identity in found.items() if identity.mtime < self._started - SETTLED_NS}
        if self._path is None or self._only_look or settled == self._known:
            return
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps(settled))
            beside.replace(self._path)


def _read(path: Path) -> dict[str, Identity]:
    try:
        return {name: Identity(*values) for name, values in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
