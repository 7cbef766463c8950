"""What agents keep compressed or as one document, read as the lines it holds."""

import io
from pathlib import Path
from typing import BinaryIO, Final

from .json_document import unfolded

SUFFIX: Final = ".zst"
DOCUMENT: Final = ".json"
BUFFER: Final = 1 << 18
"""Lines of a transcript are long: with Python's own 8 KiB, cutting them takes more than twice as long."""


def opened(path: Path) -> BinaryIO:
    """The lines of a file: decompressed when its name ends in `.zst`, one a record when in `.json`; raises `OSError`.

    A compressed file that is damaged or cut short ends where it can no longer be read. Its bytes stay archived as
    they are.
    """
    return shown(path.open("rb", BUFFER), path)


def shown(file: BinaryIO, path: Path) -> BinaryIO:
    """The lines of an open file, by the name that the agent gave it."""
    if path.suffix == DOCUMENT:
        return unfolded(file)
    if path.suffix == SUFFIX:
        from .packed import Unpacked  # of processes that help to parse, most never need it

        return io.BufferedReader(Unpacked(file, path))
    return file
