"""Tasks: files to parse, in whatever process; and the whole program of a process that does nothing else.

How soon such a process helps is decided by what it has to load first, so nothing here needs a store.
"""

import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeAlias

import msgspec
from msgspec import Struct, msgpack

from ...core.conversation import ResumePoint, Session
from ...core.errors import PalaverError
from ..files.compression import opened
from ..files.lines import head
from ..formats import TranscriptFormat
from ..reading.parsing import Parsed, parse
from ..redaction import Redactor
from ..redaction.transcript_redactor import Discretion

Answer: TypeAlias = tuple[Session, Parsed]
_ANSWERS: msgpack.Decoder[Answer | None] = msgpack.Decoder(Answer | None)
_SIZE = 8
"""Bytes that tell how many an answer has."""


class Task(Struct, frozen=True):
    """A file to parse from its start: in which format, where it was found, and which copy it has in which archive."""

    format: TranscriptFormat
    path: Path
    archive: Path
    archived: str
    key: bytes
    """By which placeholders of secrets are told apart."""

    def run(self) -> Answer:
        """The file's session, as far as its name and its first lines tell, and all its lines. Raises `OSError`."""
        with opened(self.archive / self.archived) as file:
            redactor = Redactor(self.key)
            session = Discretion(redactor).session(self.format.identify(self.path, head(file)))
            return session, parse(self.format, session, ResumePoint(), file, redactor)

    def answer(self) -> Answer | None:
        """What it found; None where its copy cannot be read: who takes the file up then says why."""
        try:
            return self.run()
        except (OSError, PalaverError):
            return None


def serve() -> None:
    """Answer tasks on standard input until it ends, or until nobody listens."""
    with suppress(BrokenPipeError), open(sys.stdout.fileno(), "wb", closefd=False) as answers:
        while True:
            try:
                task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301 - the process that started this one wrote it
            except EOFError:
                return
            said = msgpack.encode(task.answer())
            answers.write(len(said).to_bytes(_SIZE) + said)
            answers.flush()


def received(answers: IO[bytes]) -> Answer | None:
    """The next answer of a process that serves; None where there is none, or none that is understood.

    Raises `MemoryError` or `OverflowError` where something else stands there.
    """
    size = int.from_bytes(answers.read(_SIZE))
    try:
        return _ANSWERS.decode(answers.read(size))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
