"""Index generations, each built in a new folder, published atomically and never changed afterwards.

The file `CURRENT` contains the name of the published folder and the checksum of its manifest. The manifest contains
the size and checksum of each file. A generation is opened only if its files match the manifest exactly. A reader can
use its open generation even after the folder is removed.

The first ingest run writes a draft of the first text index while it ingests.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ...archiver.store import Entity, Store
from ...core.errors import IndexDamaged, IndexUnwritable
from ...core.runtime import Closing, replacing, sync_path
from ..query import tokenizer
from . import indexed_texts
from .text_index import VALUE_FIELDS, TextIndex, TextWriter

_SUFFIX = ".draft"
"""Suffix of a draft's folder. The name contains no generation number, so `Generations.sweep` removes old drafts."""


class Draft(Closing):
    """Text index that is built while the first ingest run fills an empty store. `close` deletes it if unpublished."""

    def __init__(self, store: Store, root: Path) -> None:
        """Prepare a draft in `root`, the folder of generations. The first entry creates the files."""
        self._store, self._root = store, root
        self._folder: Path | None = None
        self._writer: TextWriter | None = None
        self._watermark, self._known = 0, set[int]()
        self._useful = store.changes.last() == 0

    def add_changes(self) -> None:
        """Write the changes of the store since the last call. After a failed write, the draft is unusable."""
        if self._useful:
            try:
                self._add_changes()
            except (IndexUnwritable, OSError):
                self._useful = False

    def publish(self, folder: Path) -> bool:
        """Move the complete text index to a new folder. Return False if the draft is empty or a write failed."""
        self.add_changes()
        if not self._useful or self._writer is None or self._folder is None:
            return False
        try:
            self._writer.finish()
            self._folder.rename(folder)
        except (IndexUnwritable, OSError):
            return False
        finally:
            self._useful = False
        return True

    def _add_changes(self) -> None:
        watermark = self._store.changes.last()
        changed = self._store.changes.since(self._watermark, [Entity.ITEM])
        if not changed:
            return
        if self._writer is None:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(_SUFFIX, dir=self._root))
            self._writer = TextIndex.make(self._folder).begin()
        self._writer.replace(self._known.intersection(changed), indexed_texts.entries(self._store, changed))
        self._known.update(changed)
        self._watermark = watermark

    def close(self) -> None:
        """Remove all files of the draft."""
        self._useful, self._writer = False, None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


FORMAT = 12
"""Version of the index format. Increment it to rebuild all indexes."""
_CURRENT, _MANIFEST = "CURRENT", "manifest.json"
_GRACE = 60.0
"""Seconds for which a replaced generation is kept for running searches."""
_NAME = re.compile(r"(gen-\d+) ([0-9a-f]{64})")
_NOT_DATA = {".tantivy-writer.lock", ".tantivy-meta.lock", _MANIFEST}


class IndexOutdated(IndexDamaged):
    """Error: the index is undamaged, but was built by another version of Palaver. The next ingest run rebuilds it."""


class Manifest(Struct, frozen=True):
    """Description of a generation.

    Attributes:
        watermark: Sequence number of the last indexed change of the store.
        files: Size in bytes and SHA-256 by relative path.
        token: Random ID of the generation. The store records the IDs of all generations that were built from its data.
        values: Names of the fields with values of filters. A new filter makes the index outdated.
    """

    watermark: int
    model: str
    dimension: int
    entries: int
    vectors: int
    files: dict[str, tuple[int, str]]
    token: str = ""
    format: int = FORMAT
    analysis: int = tokenizer.VERSION
    values: tuple[str, ...] = VALUE_FIELDS

    def is_of(self, store: Store) -> bool:
        """Return whether the generation was built from the current state or an earlier state of this store.

        After a backup is restored, return False for generations that were built after that backup.
        """
        return self.watermark <= store.changes.last() and store.publications.knows(self.token)


class Generation(Struct, frozen=True):
    """Published generation: its folder and its manifest."""

    folder: Path
    manifest: Manifest

    def __hash__(self) -> int:
        return hash(self.folder)

    @property
    def text(self) -> Path:
        """Folder of the text index."""
        return self.folder / "text"

    @property
    def vectors(self) -> Path:
        """Folder of the vector index."""
        return self.folder / "vectors"


class Generations:
    """Folder of all index generations. With `read_only`, searches create no lock file in the folder."""

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root, self.read_only = root, read_only
        self._verified: set[tuple[int, int, str]] = set()
        """Inode, modification time in nanoseconds and SHA-256 of each file that has been verified.

        Generations share most of their files, so a server verifies each file once.
        """

    def current(self) -> Generation | None:
        """Return the published generation, or None before the first publication.

        Raises:
            IndexDamaged: A file is missing, damaged, or not in the manifest.
        """
        for _ in range(3):
            name = self.name()
            if name is None:
                return None
            try:
                return self._open(name)
            except IndexDamaged:
                if self.name() == name:
                    raise
        return None

    @property
    def is_outdated(self) -> bool:
        """True if another version of Palaver built the published generation."""
        try:
            self.current()
        except IndexOutdated:
            return True
        except IndexDamaged:
            return False
        return False

    def publish(self, build: Callable[[Path], Manifest], check: Callable[[], None] = lambda: None) -> Generation:
        """Publish the generation that `build` writes into a new folder, and remove replaced generations.

        Args:
            build: Writes all files into the given folder.
            check: Called just before publication. An exception cancels the publication.

        Raises:
            IndexUnwritable: A write failed. The current generation stays published.
        """
        try:
            return self._publish(build, check)
        except OSError as error:
            raise IndexUnwritable(error.strerror or str(error)) from error

    def _publish(self, build: Callable[[Path], Manifest], check: Callable[[], None]) -> Generation:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 1 + max((_number(path) for path in self.root.glob("gen-*")), default=0)
        beside = self.root / f"new-{number}"
        _remove(beside)
        try:
            beside.mkdir(mode=0o700)
            manifest = build(beside)
            text = json.dumps(asdict(manifest)).encode()
            (beside / _MANIFEST).write_bytes(text)
            for path in sorted(beside.rglob("*"), reverse=True):
                path.chmod(0o700 if path.is_dir() else 0o600)
                sync_path(path)
            sync_path(beside)
            check()
            folder = beside.rename(self.root / f"gen-{number}")
        except BaseException:
            _remove(beside)
            raise
        sync_path(self.root)
        with replacing(self.root / _CURRENT) as file:
            file.write(f"{folder.name} {hashlib.sha256(text).hexdigest()}".encode())
        self._sweep(number - 1)
        return Generation(folder, manifest)

    def sweep(self) -> None:
        """Remove replaced generations that no running search can still open."""
        current = _NAME.fullmatch(self.name() or "")
        if current is not None:
            self._sweep(_number(Path(current[1])))

    def verify(self, generation: Generation) -> None:
        """Verify the checksums of all files against the manifest. Raises `IndexDamaged`."""
        for file, (_, digest) in generation.manifest.files.items():
            if _digest(generation.folder / file) != digest:
                raise IndexDamaged(generation.folder / file, "the file differs from the manifest")

    def name(self) -> str | None:
        """Return the content of `CURRENT`, which differs for each generation, or None before the first publication."""
        try:
            return (self.root / _CURRENT).read_text("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"unreadable: {error.strerror}"

    def _open(self, name: str) -> Generation:
        current = _NAME.fullmatch(name)
        if current is None:
            raise IndexDamaged(self.root / _CURRENT, "the file does not contain the name of a generation")
        folder = self.root / current[1]
        manifest = _read_manifest(folder / _MANIFEST, current[2])
        if unknown := set(_data_files(folder)) - manifest.files.keys():
            raise IndexDamaged(folder / min(unknown), "the file is not listed in the manifest")
        for file, (_, digest) in manifest.files.items():
            self._verify_once(folder / file, digest)
        return Generation(folder, manifest)

    def _verify_once(self, path: Path, digest: str) -> None:
        stat = _stat(path)
        identity = stat.st_ino, stat.st_mtime_ns, digest
        if identity not in self._verified:
            if _digest(path) != digest:
                raise IndexDamaged(path, "the file differs from the manifest")
            self._verified.add(identity)

    def _sweep(self, before: int) -> None:
        """Remove generations with a number below `before`, and leftovers of interrupted builds."""
        for path in self.root.iterdir():
            if path.is_dir() and _number(path) < before and not self._is_in_use(path):
                _remove(path)

    def _is_in_use(self, folder: Path) -> bool:
        """Return whether a running search can still open the generation.

        Searches can open a generation for `_GRACE` seconds after it was replaced, even if the clock was set back.
        """
        try:
            replaced = (self.root / f"gen-{_number(folder) + 1}" / _MANIFEST).stat().st_mtime
        except OSError:
            return False
        return folder.name.startswith("gen-") and abs(time.time() - replaced) < _GRACE


def checksums(folder: Path, shared: Generation | None = None) -> dict[str, tuple[int, str]]:
    """Return the size and SHA-256 of each data file below a folder, by relative path.

    Files linked from the generation `shared` keep their recorded checksums, so later damage stays detectable.
    """
    shared_digests: dict[int, str] = {}
    if shared is not None:
        shared_digests = {
            _stat(shared.folder / file).st_ino: digest for file, (_, digest) in shared.manifest.files.items()
        }
    stats = {file: _stat(folder / file) for file in sorted(_data_files(folder))}
    return {
        file: (stat.st_size, shared_digests.get(stat.st_ino) or _digest(folder / file)) for file, stat in stats.items()
    }


def _data_files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.name not in _NOT_DATA and not path.is_dir():
            yield path.relative_to(folder).as_posix()


def link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link to a file, or copy the file if the file system does not support hard links."""
    try:
        os.link(source, target)
    except OSError:
        from shutil import copy2

        copy2(source, target)


def _remove(folder: Path) -> None:
    """Remove a folder. Files that cannot be removed are left for the next call of `sweep`."""
    from shutil import rmtree  # takes 2 ms, and searches never remove folders

    rmtree(folder, ignore_errors=True)


def _stat(path: Path) -> os.stat_result:
    with _unreadable_as_damaged(path):
        return path.stat()


def _digest(path: Path) -> str:
    with _unreadable_as_damaged(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _unreadable_as_damaged(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise IndexDamaged(path, error.strerror or str(error)) from None


def _read_manifest(path: Path, digest: str) -> Manifest:
    with _unreadable_as_damaged(path):
        text = path.read_bytes()
    if hashlib.sha256(text).hexdigest() != digest:
        raise IndexDamaged(path, "the manifest does not match its published checksum")
    recorded: dict[str, Any] = json.loads(text)
    recorded["values"] = tuple(recorded.get("values", ()))
    version = recorded.get("format"), recorded.get("analysis"), recorded["values"]
    if version != (FORMAT, tokenizer.VERSION, VALUE_FIELDS):
        raise IndexOutdated(path, "the index was built by another version of Palaver")
    recorded["files"] = {name: tuple(pair) for name, pair in recorded["files"].items()}
    return Manifest(**recorded)


def _number(path: Path) -> int:
    digits = path.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
