"""Index generations: built beside, checksummed, published at once, never changed afterwards.

`CURRENT` names the folder that readers open and the digest of its manifest, which in turn has those of all files. A
reader that has a generation open keeps it even after it was removed.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.errors import IndexDamaged
from . import analysis

FORMAT = 1
_CURRENT, _MANIFEST = "CURRENT", "manifest.json"
_NAME = re.compile(r"(gen-\d+) ([0-9a-f]{64})")
_NOT_DATA = {".tantivy-writer.lock", ".tantivy-meta.lock", _MANIFEST}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation holds. `watermark` is the last change that is in it; `files` are (size, SHA-256) by path."""

    watermark: int
    model: str
    dimension: int
    entries: int
    vectors: int
    files: dict[str, tuple[int, str]]
    format: int = FORMAT
    analysis: int = analysis.VERSION


@dataclass(frozen=True, slots=True)
class Generation:
    """A published folder whose files are what its manifest says."""

    folder: Path
    manifest: Manifest

    @property
    def text(self) -> Path:
        """The text index's folder."""
        return self.folder / "text"

    @property
    def vectors(self) -> Path:
        """The vector index's folder."""
        return self.folder / "vectors"


class Generations:
    """The folder of generations."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def current(self) -> Generation | None:
        """The published generation, verified; None before the first. Raises `IndexDamaged`."""
        for _ in range(3):
            name = self.name()
            if name is None:
                return None
            try:
                return self._verified(name)
            except IndexDamaged:
                if self.name() == name:
                    raise
        return None

    def publish(self, build: Callable[[Path], Manifest], check: Callable[[], None] = lambda: None) -> Generation:
        """Let `build` fill a new folder, then make it the current one. Older ones are removed, bar the last.

        What `check` raises just before the switch prevents it.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1 + max((_number(path) for path in self.root.glob("gen-*")), default=0)
        beside = self.root / f"new-{number}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        manifest = build(beside)
        text = json.dumps(asdict(manifest)).encode()
        (beside / _MANIFEST).write_bytes(text)
        for path in sorted(beside.rglob("*"), reverse=True):
            _sync(path)
        _sync(beside)
        check()
        folder = beside.rename(self.root / f"gen-{number}")
        _sync(self.root)
        self._point_to(f"{folder.name} {hashlib.sha256(text).hexdigest()}")
        self._sweep(number)
        return Generation(folder, manifest)

    def name(self) -> str | None:
        """What tells the published generation from every other, unverified; None before the first."""
        try:
            return (self.root / _CURRENT).read_text("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"unreadable: {error.strerror}"

    def _verified(self, name: str) -> Generation:
        known = _NAME.fullmatch(name)
        if known is None:
            raise IndexDamaged(self.root / _CURRENT, "names no generation")
        folder = self.root / known[1]
        manifest = _read_manifest(folder / _MANIFEST, known[2])
        for file, (size, digest) in manifest.files.items():
            path = folder / file
            try:
                found = _checksum(path)
            except OSError as error:
                raise IndexDamaged(path, error.strerror or str(error)) from None
            if found != (size, digest):
                raise IndexDamaged(path, "not what the manifest says")
        return Generation(folder, manifest)

    def _point_to(self, name: str) -> None:
        beside = self.root / f"{_CURRENT}.new"
        beside.write_text(name)
        _sync(beside)
        beside.replace(self.root / _CURRENT)
        _sync(self.root)

    def _sweep(self, newest: int) -> None:
        for path in self.root.iterdir():
            if path.is_dir() and _number(path) < newest - 1:
                shutil.rmtree(path, ignore_errors=True)


def checksums(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of every data file below a folder, by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _NOT_DATA)
    return {path.relative_to(folder).as_posix(): _checksum(path) for path in files}


def _checksum(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def _read_manifest(path: Path, digest: str) -> Manifest:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise IndexDamaged(path, error.strerror or str(error)) from None
    if hashlib.sha256(text).hexdigest() != digest:
        raise IndexDamaged(path, "not the one that was published")
    values: dict[str, Any] = json.loads(text)
    if (values.get("format"), values.get("analysis")) != (FORMAT, analysis.VERSION):
        raise IndexDamaged(path, "made by another version of Palaver")
    values["files"] = {name: tuple(pair) for name, pair in values["files"].items()}
    return Manifest(**values)


def _number(path: Path) -> int:
    digits = path.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
