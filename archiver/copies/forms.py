"""Copies: one file of the archive in one of its two forms, plain while it may grow and sealed when it went quiet.

The change from one form to the other is made beside, synced, compared with what it came from, and switched at once.
While both are there the plain one counts: it is whole whenever it has its name.
"""

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from ...core.durability import sync, sync_path
from ...core.errors import CopyDamaged
from ..files.compression import BUFFER
from . import checksums
from .seekable import Seekable, pack

SEALED: Final = ".sealed.zst"
"""What the name of the sealed form ends in. `.zst` alone is what an agent itself compressed."""
ASIDE: Final = ".damaged"
"""What the name of a copy ends in that was found damaged and kept; a number may follow."""
UNFINISHED: Final = ".unfinished"
"""The folder of the archive where forms are made before they get their names."""
_PIECE: Final = 1 << 20


class Copy(Struct, frozen=True):
    """A copy by its archive path. Only who holds the archiver's lease changes forms; anybody may read meanwhile."""

    root: Path
    archived: str

    @property
    def plain(self) -> Path:
        """Where it lies while it may grow."""
        return self.root / self.archived

    @property
    def sealed(self) -> Path:
        """Where it lies when it is sealed."""
        return self.root / (self.archived + SEALED)

    def open(self) -> BinaryIO:
        """The agent's bytes; raises `OSError`, or `CopyDamaged` here or where they are read."""
        for _ in range(2):  # it may be sealed or unsealed between two looks
            try:
                return self.plain.open("rb", BUFFER)
            except FileNotFoundError:
                pass
            try:
                return Seekable(self.sealed)
            except FileNotFoundError:
                pass
        return self.plain.open("rb", BUFFER)

    def exists(self) -> bool:
        """Whether there is a copy, in whatever state."""
        return self.plain.exists() or self.sealed.exists()

    def size(self) -> int:
        """Bytes of its content; 0 when there is no copy, or one whose end or table is damaged. Raises `OSError`."""
        try:
            return self.plain.stat().st_size
        except FileNotFoundError:
            pass
        try:
            with Seekable(self.sealed) as file:
                return file.table.size if file.table.digest else 0
        except FileNotFoundError:
            return 0

    def sums(self) -> bytes:
        """Compute the packed checksums of its content; raises like `open`."""
        with self.open() as file:
            return checksums.of(file)

    def seal(self) -> tuple[int, int]:
        """Turn the plain form into the sealed one; how many bytes it had and has.

        Raises `OSError` where there is no room, and `CopyDamaged` where what was written reads back differently. The
        plain form stays then.
        """
        with self._made() as beside:
            with self.plain.open("rb") as source, beside.open("wb") as target:
                table = pack(source, target)
                packed = target.tell()
                sync(target)
            with Seekable(beside) as made:
                if made.table != table or _digest(made) != table.digest:
                    raise CopyDamaged(beside, "it reads back differently", hint="Check the disk, then try again.")
            self._become(beside, self.sealed)
        self.plain.unlink()
        sync_path(self.plain.parent)
        return table.size, packed

    def unseal(self) -> None:
        """Make sure that there is a plain form, if there is any; raises `OSError` and `CopyDamaged`."""
        if self.plain.exists() or not self.sealed.exists():
            self.sealed.unlink(missing_ok=True)
            return
        with self._made() as beside, Seekable(self.sealed) as source:
            with beside.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
                sync(target)
            with beside.open("rb") as made:
                if _digest(made) != source.table.digest:
                    raise CopyDamaged(self.sealed, "its content is not what was sealed")
            self._become(beside, self.plain)
        self.sealed.unlink()

    def recover(self) -> None:
        """Decompress a copy whose table was lost, or that has foreign bytes after its end.

        Raises `OSError`, and `CopyDamaged` where some of the content was lost: that form stays as it is.
        """
        if self.plain.exists():
            return
        with self._made() as beside, Seekable(self.sealed) as source:
            if not source.form_damage():
                return
            with beside.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
                sync(target)
            if source.table.digest and _digest(source) != source.table.digest:
                raise CopyDamaged(self.sealed, "its content is not what was sealed")
            self._become(beside, self.plain)
        self.sealed.unlink()

    def set_aside(self) -> None:
        """Give a damaged sealed form another name, so that what it says can be copied again. No byte is deleted."""
        self._set_aside(self.sealed)
        sync_path(self.sealed.parent)

    def give_way(self, beside: Path) -> None:
        """Let a whole and synced file of the same file system be the plain form; what was there is set aside."""
        # Last the sealed form: for all that time there is one that can be read.
        if self.plain.exists():
            self._set_aside(self.plain)
        self.plain.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._become(beside, self.plain)
        if self.sealed.exists():
            self.set_aside()

    def set_asides(self) -> list[Path]:
        """The damaged forms of it that were kept."""
        if not self.plain.parent.is_dir():
            return []
        names = self.plain.name + ASIDE, self.sealed.name + ASIDE
        return [path for path in self.plain.parent.iterdir() if path.name.startswith(names)]

    @contextmanager
    def _made(self) -> Generator[Path]:
        folder = self.root / UNFINISHED
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        beside = Path(name)
        try:
            yield beside
        finally:
            beside.unlink(missing_ok=True)

    def _set_aside(self, form: Path) -> None:
        aside, number = form.with_name(form.name + ASIDE), 1
        while aside.exists():
            number += 1
            aside = form.with_name(f"{form.name}{ASIDE}~{number}")
        form.replace(aside)

    def _become(self, beside: Path, form: Path) -> None:
        beside.replace(form)
        sync_path(form.parent)


def _digest(file: io.BufferedReader) -> bytes:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").digest()
