"""Raw copy of one agent's file, in one of two storage formats: uncompressed while it can grow, compressed afterwards.

To change the format, a temporary file is written, synced, compared with the original and renamed to its final name.
Therefore, a file with a final name is always complete. If both files exist, the uncompressed file is used.
"""

import hashlib
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
from .checksums import checksums_of
from .compressed_file import CompressedFile, compress

COMPRESSED_SUFFIX: Final = ".sealed.zst"
"""Suffix of a compressed copy. A file with the suffix `.zst` alone was compressed by its agent."""
DAMAGED_SUFFIX: Final = ".damaged"
"""Suffix of a damaged file that was replaced but kept. A second such file has the suffix `.damaged~2`."""
UNFINISHED: Final = ".unfinished"
"""Folder inside the archive for temporary files."""
_PIECE: Final = 1 << 20


class Copy(Struct, frozen=True):
    """Raw copy, identified by its archive path. To change its format, the caller must hold the archiver's lease."""

    root: Path
    archived: str

    @property
    def path(self) -> Path:
        """Path of the uncompressed file."""
        return self.root / self.archived

    @property
    def compressed_path(self) -> Path:
        """Path of the compressed file."""
        return self.root / (self.archived + COMPRESSED_SUFFIX)

    def open(self) -> BinaryIO:
        """Open the decompressed content. Raises `OSError`. Opening or reading a damaged copy raises `CopyDamaged`."""
        for _ in range(2):  # The format may change between the two attempts.
            try:
                return self.path.open("rb", BUFFER)
            except FileNotFoundError:
                pass
            try:
                return CompressedFile(self.compressed_path)
            except FileNotFoundError:
                pass
        return self.path.open("rb", BUFFER)

    def exists(self) -> bool:
        """Return whether a copy exists, damaged or not."""
        return self.path.exists() or self.compressed_path.exists()

    def size(self) -> int:
        """Return the size of the content in bytes.

        Return 0 if the copy is missing, or if it is compressed and its table is damaged. Raises `OSError`.
        """
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            pass
        try:
            with CompressedFile(self.compressed_path) as file:
                return file.table.size if file.table.digest else 0
        except FileNotFoundError:
            return 0

    def checksums(self) -> bytes:
        """Compute the packed checksums of the content. Raises the errors of `open`."""
        with self.open() as file:
            return checksums_of(file)

    def compress(self) -> tuple[int, int]:
        """Replace the uncompressed file with a compressed file. Return the sizes in bytes before and after.

        Raises `OSError`, and `CopyDamaged` if the compressed file does not restore the original bytes. If an error
        occurs, the uncompressed file stays.
        """
        with self.temporary() as made:
            with self.path.open("rb") as source, made.open("wb") as target:
                table = compress(source, target)
                size = target.tell()
                sync(target)
            with CompressedFile(made) as written:
                if written.table != table or _digest(written) != table.digest:
                    raise CopyDamaged(
                        made,
                        "the compressed file does not restore the original bytes",
                        hint="Check the disk, then try again.",
                    )
            _rename(made, self.compressed_path)
        self.path.unlink()
        sync_path(self.path.parent)
        return table.size, size

    def decompress(self) -> None:
        """Replace the compressed file, if it exists, with an uncompressed file.

        Raises `OSError`, and `CopyDamaged` if some of the content is lost. On an error, the compressed file is kept.
        """
        if self.path.exists() or not self.compressed_path.exists():
            self.compressed_path.unlink(missing_ok=True)
            return
        with self.temporary() as made:
            with CompressedFile(self.compressed_path) as source, made.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
                sync(target)
                expected = source.table.digest
            with made.open("rb") as written:
                if expected and _digest(written) != expected:
                    raise CopyDamaged(self.compressed_path, "its content differs from the content that was compressed")
            _rename(made, self.path)
        self.compressed_path.unlink()

    def format_damage(self) -> str:
        """Describe damage outside the content of the compressed file. The result is empty for an intact file.

        Raises the errors of `open`.
        """
        with self.open() as file:
            return file.format_damage() if isinstance(file, CompressedFile) else ""

    def replace(self, made: Path) -> None:
        """Replace the copy with the complete, synced file `made`. Keep the files of the old copy, marked as damaged."""
        # Rename the compressed file last, so that a readable file exists at every moment.
        if self.path.exists():
            _keep_damaged(self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _rename(made, self.path)
        if self.compressed_path.exists():
            _keep_damaged(self.compressed_path)
            sync_path(self.path.parent)

    def damaged_files(self) -> list[Path]:
        """Return the files of this copy that were kept and marked as damaged."""
        if not self.path.parent.is_dir():
            return []
        names = self.path.name + DAMAGED_SUFFIX, self.compressed_path.name + DAMAGED_SUFFIX
        return [path for path in self.path.parent.iterdir() if path.name.startswith(names)]

    @contextmanager
    def temporary(self) -> Generator[Path]:
        """Create an empty temporary file on the archive's file system. Delete it afterwards unless it was renamed."""
        folder = self.root / UNFINISHED
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        made = Path(name)
        try:
            yield made
        finally:
            made.unlink(missing_ok=True)


def _keep_damaged(file: Path) -> None:
    kept, number = file.with_name(file.name + DAMAGED_SUFFIX), 1
    while kept.exists():
        number += 1
        kept = file.with_name(f"{file.name}{DAMAGED_SUFFIX}~{number}")
    file.replace(kept)


def _rename(made: Path, target: Path) -> None:
    made.replace(target)
    sync_path(target.parent)


def _digest(file: BinaryIO) -> bytes:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
