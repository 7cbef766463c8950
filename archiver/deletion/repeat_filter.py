"""Fast filter for copies that can repeat deleted lines, so that a preview hashes the lines of few copies."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from ..files.lines import Line
from .suppression import IDENTIFYING

_HOUR: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
"""Pattern for the date and the hour of a time. The lines of a session have few different hours."""
_TEXTS_MAX: Final = 48
"""Maximum number of texts to search for. Searching for more takes longer than hashing all lines."""
_SHORTEST: Final = 8
"""Minimum number of characters of a session ID that is searched for."""
_PIECE: Final = 1 << 20
_LONGEST: Final = 256
"""Maximum number of characters of a text to search for."""


class RepeatFilter:
    """Set of short texts that occur in every line that repeats one of the added lines.

    Equal lines contain the same IDs and times, even if an agent wrote their JSON with another order of keys.
    """

    def __init__(self) -> None:
        self._texts, self._paths = set[bytes](), set[Path]()
        self.excludes_nothing = False
        """True if some lines could not be added, so that any copy can repeat them."""

    def add(self, paths: Iterable[Path], session_id: str, lines: Iterable[Line]) -> None:
        """Add the selected lines of a file that has these paths."""
        self._paths.update(paths)
        native_id = session_id.encode(errors="replace")
        if not _SHORTEST <= len(native_id) <= _LONGEST:
            native_id = b""
        for line in lines:
            if native_id and native_id in line.data:
                self._texts.add(native_id)
            elif match := _HOUR.search(line.data) or IDENTIFYING.search(line.data):
                self._texts.add(match[0][:_LONGEST])

    def may_match(self, path: Path, file: BinaryIO) -> bool:
        """Return whether a copy of an agent's file can repeat an added line.

        Lines without an ID or a time are recognised by the path of the agent's file.
        """
        if self.excludes_nothing or path in self._paths or len(self._texts) > _TEXTS_MAX:
            return True
        tail = b""
        while piece := file.read(_PIECE):
            data = tail + piece
            if any(text in data for text in self._texts):
                return True
            tail = data[-_LONGEST:]
        return False
