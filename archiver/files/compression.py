"""Functions that open plain files, compressed files and JSON documents as lines."""

import io
from pathlib import Path
from typing import BinaryIO, Final

from .json_document import document_lines
from .zstd_file import DecompressedFile

SUFFIX: Final = ".zst"
DOCUMENT: Final = ".json"
BUFFER: Final = 1 << 18
"""Size of the read buffer in bytes. Python's default of 8 KiB more than doubles the time to split long lines."""


def opened(path: Path) -> BinaryIO:
    """Open a file as a stream of lines. Raises `OSError`.

    A file with the suffix `.zst` is decompressed, up to the first unreadable byte. A file with the suffix `.json` is
    converted to one record per line.
    """
    return as_lines(path.open("rb", BUFFER), path)


def as_lines(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a stream of lines for an open file, converted by the suffix of its path as in `opened`."""
    if path.suffix == DOCUMENT:
        return document_lines(file)
    if path.suffix == SUFFIX:
        return io.BufferedReader(DecompressedFile(file, path))
    return file
