"""Index generations: built beside, checksummed, published at once, never changed afterwards.

`CURRENT` names the folder that readers open. A reader that has a generation open keeps it even after it was removed.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core.errors import IndexDamaged
from . import analysis

FORMAT = 1
_CURRENT, _MANIFEST = "CURRENT", "manifest.json"
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
        self._root = root

    def current(self) -> Generation | None:
        """The published generation, verified; None before the first. Raises `IndexDamaged`."""
        for _ in range(3):
            name = self.name()
            if name is None:
                return None
            try:
                return self._verified(self._root / name)
            except IndexDamaged:
                if self.name() == name:
                    raise
        return None

    def publish(self, build: Callable[[Path], Manifest]) -> Generation:
        """Let `build` fill a new folder, then make it the current one. Older ones are removed, bar the last."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1 + max((_number(path) for path in self._root.glob("gen-*")), default=0)
        beside = self._root / f"new-{number}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        manifest = build(beside)
        (beside / _MANIFEST).write_text(json.dumps(asdict(manifest)))
        for path in sorted(beside.rglob("*"), reverse=True):
            _sync(path)
        _sync(beside)
        folder = beside.rename(self._root / f"gen-{number}")
        self._point_to(folder.name)
        self._sweep(number)
        return Generation(folder, manifest)

    def discard(self) -> None:
        """Forget the current generation, as after damage; its files go when the next one is published."""
        (self._root / _CURRENT).unlink(missing_ok=True)

    def name(self) -> str | None:
        """The name of the published generation, unverified; None before the first."""
        try:
            return (self._root / _CURRENT).read_text("ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def _verified(self, folder: Path) -> Generation:
        manifest = _read_manifest(folder / _MANIFEST)
        for name, (size, digest) in manifest.files.items():
            path = folder / name
            try:
                found = _checksum(path)
            except OSError as error:
                raise IndexDamaged(path, error.strerror or str(error)) from None
            if found != (size, digest):
                raise IndexDamaged(path, "not what the manifest says")
        return Generation(folder, manifest)

    def _point_to(self, name: str) -> None:
        beside = self._root / f"{_CURRENT}.new"
        beside.write_text(name)
        _sync(beside)
        beside.replace(self._root / _CURRENT)
        _sync(self._root)

    def _sweep(self, newest: int) -> None:
        for path in self._root.iterdir():
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


def _read_manifest(path: Path) -> Manifest:
    try:
        values = json.loads(path.read_bytes())
        manifest = Manifest(**{**values, "files": {name: tuple(pair) for name, pair in values["files"].items()}})
    except (OSError, ValueError, TypeError, KeyError):
        raise IndexDamaged(path, "no readable manifest") from None
    if (manifest.format, manifest.analysis) != (FORMAT, analysis.VERSION):
        raise IndexDamaged(path, "made by another version of Palaver")
    return manifest


def _number(path: Path) -> int:
    digits = path.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
