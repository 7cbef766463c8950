"""Parsing of source files in this process and in the processes of a pool."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, msgpack

from ...core.closing import Closing
from ...core.document import Chunk
from ...core.errors import DocumentUnreadable
from ...core.text import without_ansi
from ...core.worker_pool import WorkerPool, processors
from ..redaction import Redactor
from .document_formats import format_of

_ALONE: Final = 64
"""Number of files that are parsed in this process. Starting a pool takes longer than parsing them."""
_DECODER: Final = msgpack.Decoder(list[Chunk])


def parse(path: Path, data: bytes, redactor: Redactor) -> list[Chunk]:
    """Return the chunks of a file. Raises `DocumentUnreadable`."""
    known = format_of(path)
    # Secrets are redacted before texts are split.
    texts = [without_ansi(text).replace("\0", "") for text in known.texts(data, path)]
    return known.chunks([redactor.redact(text).text for text in texts])


class CodeParser(Closing):
    """Parser that uses a pool if there are many source files."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._submitted = redactor, 0
        self._pool = WorkerPool(__name__, processors())

    def submit(self, path: Path, data: bytes) -> Callable[[], list[Chunk]]:
        """Return a function that returns the chunks of a file. In a pool, parsing starts at once."""
        alone = partial(parse, path, data, self._redactor)
        self._submitted += 1
        if self._submitted <= _ALONE:
            return alone
        future = self._pool.submit(_parse_encoded, path, data, self._redactor)

        def chunks() -> list[Chunk]:
            try:
                return _DECODER.decode(future.result())
            except (OSError, RuntimeError, MemoryError, MsgspecError):  # A RuntimeError means that the process died.
                return alone()

        return chunks

    def close(self) -> None:
        """End the processes of the pool."""
        self._pool.close()


def _parse_encoded(path: Path, data: bytes, redactor: Redactor) -> bytes:
    """Return the encoded chunks, or nothing if the file is unreadable. The caller then reports the reason."""
    try:
        return msgpack.encode(parse(path, data, redactor))
    except DocumentUnreadable:
        return b""
