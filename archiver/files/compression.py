"""Opening of files as lines, even if they are compressed or one JSON document."""

import io
from pathlib import Path
from typing import BinaryIO, Final

from .json_document import document_lines
from .zstd_file import DecompressedFile

SUFFIX: Final = ".zst"
DOCUMENT: Final = ".json"
BUFFER: Final = 1 << 18
"""Size of the read buffer: with Python's 8 KiB, splitting long lines takes more than twice as long."""


def opened(path: Path) -> BinaryIO:
    """Open the lines of a file: decompressed if its name ends in `.zst`, one record a line if in `.json`.

    A damaged compressed file ends where it can no longer be read. Raises `OSError`.
    """
    return as_lines(path.open("rb", BUFFER), path)


def as_lines(file: BinaryIO, path: Path) -> BinaryIO:
    """Return the lines of an open file, by the suffix of its path."""
    if path.suffix == DOCUMENT:
        return document_lines(file)
    if path.suffix == SUFFIX:
        return io.BufferedReader(DecompressedFile(file, path))
    return file
