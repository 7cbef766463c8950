"""Index generations: built beside, checksummed, published at once, never changed afterwards.

`CURRENT` names the folder that readers open and the digest of its manifest, which in turn has those of all files. A
reader that has a generation open keeps it even after it was removed. What was verified once is not read again while
its files are untouched.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from ...archiver.store import Store
from ...core.durability import replacing, sync_path
from ...core.errors import IndexDamaged, IndexUnwritable
from ..model.verified import Identity, Verified
from ..query import tokenizer

FORMAT = 10
_CURRENT, _MANIFEST = "CURRENT", "manifest.json"
_VERIFIED = "verified.json"
_GRACE = 60.0
"""Seconds for which a generation stays after it was replaced: no search that began with it takes longer."""
_NAME = re.compile(r"(gen-\d+) ([0-9a-f]{64})")
_NOT_DATA = {".tantivy-writer.lock", ".tantivy-meta.lock", _MANIFEST, _VERIFIED}


class IndexOutdated(IndexDamaged):
    """Another version of Palaver made a generation, which is no damage: nothing reads it, and a pass makes it anew."""


class Manifest(Struct, frozen=True):
    """What a generation holds. `watermark` is the last change that is in it; `files` are (size, SHA-256) by path.

    The store that it was made from knows its `token`.
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

    def is_of(self, store: Store) -> bool:
        """Whether a store can be followed from here: not one that was restored to what it was before, or another."""
        return self.watermark <= store.changes.last() and store.publications.knows(self.token)


class Generation(Struct, frozen=True, eq=False):
    """A published folder whose files are what its manifest says."""

    folder: Path
    manifest: Manifest
    _stats: Mapping[str, Identity] = field(default_factory=dict[str, Identity])

    def __eq__(self, other: object) -> bool:
        """Whether both are the same, whenever their files were looked at."""
        return isinstance(other, Generation) and (self.folder, self.manifest) == (other.folder, other.manifest)

    def __hash__(self) -> int:
        return hash(self.folder)

    def is_untouched(self) -> bool:
        """Whether all files are still those that were verified, as far as can be told without reading them."""
        root = str(self.folder)  # asked before every search: joining paths would take longer than asking the system
        try:
            return all(_stat(f"{root}/{file}") == stat for file, stat in self._stats.items())
        except IndexDamaged:
            return False

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

    def __init__(self, root: Path, *, only_look: bool = False) -> None:
        """With `only_look` it is not even written down which files were verified."""
        self.root, self._only_look = root, only_look

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

    @property
    def is_outdated(self) -> bool:
        """Whether another version of Palaver made the published generation, so that it has to be made anew."""
        try:
            self.current()
        except IndexOutdated:
            return True
        except IndexDamaged:
            return False
        return False

    def publish(self, build: Callable[[Path], Manifest], check: Callable[[], None] = lambda: None) -> Generation:
        """Let `build` fill a new folder, then make it the current one. Older ones are removed, bar the last.

        What `check` raises just before the switch prevents it. Raises `IndexUnwritable`; the current one stays then.
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
        """Remove every generation that was replaced, once nobody can still read it. It costs a look at a folder."""
        known = _NAME.fullmatch(self.name() or "")
        if known is not None:
            self._sweep(_number(Path(known[1])))

    def verify(self, generation: Generation) -> None:
        """Read every file again, whatever was verified before; raises `IndexDamaged`."""
        for file, (_, digest) in generation.manifest.files.items():
            if _digest(generation.folder / file) != digest:
                raise IndexDamaged(generation.folder / file, "not what the manifest says")

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
        verified = Verified(folder / _VERIFIED, only_look=self._only_look)
        stats = {file: _stat(folder / file) for file in manifest.files}
        for file in _data_files(folder):
            if file not in stats:
                raise IndexDamaged(folder / file, "nothing that was published")
        for file, (size, digest) in manifest.files.items():
            whole = verified.has(file, stats[file]) or _digest(folder / file) == digest
            if stats[file].size != size or not whole:
                raise IndexDamaged(folder / file, "not what the manifest says")
        verified.keep(stats)
        return Generation(folder, manifest, stats)

    def _sweep(self, before: int) -> None:
        """Remove what was replaced, once nobody can still read it, and what was left unfinished."""
        for path in self.root.iterdir():
            if path.is_dir() and _number(path) < before and not self._may_be_read(path):
                _remove(path)

    def _may_be_read(self, folder: Path) -> bool:
        """Whether the generation was replaced a moment ago; a clock that was set back does not keep it for long."""
        try:
            replaced = (self.root / f"gen-{_number(folder) + 1}" / _MANIFEST).stat().st_mtime
        except OSError:
            return False
        return folder.name.startswith("gen-") and abs(time.time() - replaced) < _GRACE


def checksums(folder: Path, shared: Generation | None = None) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of every data file below a folder, by relative path.

    Files that are the very files of another generation, which was verified, are not read again.
    """
    known: dict[Identity, str] = {}
    if shared is not None:
        known = {_stat(shared.folder / file): digest for file, (_, digest) in shared.manifest.files.items()}
    return {file: _checksum(folder / file, known) for file in sorted(_data_files(folder))}


def _data_files(folder: Path) -> Iterator[str]:
    """The files of a generation that its manifest has to name."""
    for path in folder.rglob("*"):
        if path.name not in _NOT_DATA and not path.name.startswith(_VERIFIED) and not path.is_dir():
            yield path.relative_to(folder).as_posix()


def share(source: Path, target: Path) -> None:
    """The same file under another name, where the file system can; otherwise a copy."""
    try:
        os.link(source, target)
    except OSError:
        from shutil import copy2

        copy2(source, target)


def _remove(folder: Path) -> None:
    """What cannot be removed now is when a later one is published."""
    from shutil import rmtree  # which loads compressors: 2 ms of every search, and none removes anything

    rmtree(folder, ignore_errors=True)


def _checksum(path: Path, known: Mapping[Identity, str]) -> tuple[int, str]:
    stat = _stat(path)
    return stat.size, known.get(stat) or _digest(path)


def _stat(path: Path | str) -> Identity:
    """Raises `IndexDamaged` for a file that is not there."""
    try:
        return Identity.of(path)
    except OSError as error:
        raise IndexDamaged(Path(path), error.strerror or str(error)) from None


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise IndexDamaged(path, error.strerror or str(error)) from None


def _read_manifest(path: Path, digest: str) -> Manifest:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise IndexDamaged(path, error.strerror or str(error)) from None
    if hashlib.sha256(text).hexdigest() != digest:
        raise IndexDamaged(path, "not the one that was published")
    values: dict[str, Any] = json.loads(text)
    if (values.get("format"), values.get("analysis")) != (FORMAT, tokenizer.VERSION):
        raise IndexOutdated(path, "made by another version of Palaver")
    values["files"] = {name: tuple(pair) for name, pair in values["files"].items()}
    return Manifest(**values)


def _number(path: Path) -> int:
    digits = path.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
