"""A made-up history on disk, which grows and changes, and the archive that follows it."""

# pyright: reportPrivateUsage=false

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Source, Store, StoredExchange
from palaver.core.conversation import Exchange, Session
from palaver.core.home import Home
from palaver.core.report import IngestReport

from .formats.claude_code.claude_lines import replied, said, text, written

ORIGINAL = "11111111-0000-4000-8000-000000000001"
FORK = "22222222-0000-4000-8000-000000000002"

TABLES = {
    "session": "id",
    "source": "id",
    "record": "id",
    "item": "key",
    "exchange": "item",
    "change": "seq",
    "problem": "path",
}


def talk(*words: str, session: str = ORIGINAL, project: str = "/home/demo/shop") -> list[dict[str, Any]]:
    """One exchange for each word: a prompt `word?` and the answer `word!`, with ids made from the word."""
    place = {"sessionId": session, "cwd": project, "gitBranch": "main"}
    lines: list[dict[str, Any]] = []
    for word in words:
        lines += [
            said(f"{word}?", uuid=f"{word}-asked", **place),
            replied(text(f"{word}!"), id=f"msg-{word}", uuid=f"{word}-answered", parentUuid=f"{word}-asked", **place),
        ]
    return lines


class History:
    """Transcripts below `projects`, in `shop` and others, and the home beside it that archives them."""

    def __init__(self, root: Path, home: str = "home") -> None:
        self.folder = root / "projects"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.home = Home(root / home)
        self.home.make()
        self.raw = RawArchive(self.home.archive)
        self.store = Store.create(self.home.database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.close()

    def path(self, session: str = ORIGINAL, project: str = "shop") -> Path:
        """Where a session lies."""
        return self.folder / project / f"{session}.jsonl"

    def write(
        self, data: bytes | Sequence[object], session: str = ORIGINAL, *, project: str = "shop", at: int = 1
    ) -> Path:
        """Write a transcript in place, last changed `at` seconds after a fixed moment."""
        path = self.path(session, project)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else written(data))
        return self.touch(path, at)

    def append(self, data: bytes | Sequence[object], session: str = ORIGINAL, *, at: int = 2) -> Path:
        """Add to a transcript."""
        path = self.path(session)
        with path.open("ab") as file:
            file.write(data if isinstance(data, bytes) else written(data))
        return self.touch(path, at)

    def touch(self, path: Path, at: int) -> Path:
        """Set the time at which a file was last changed."""
        os.utime(path, ns=(0, (1_700_000_000 + at) * 10**9))
        return path

    def ingest(self) -> IngestReport:
        """One pass over everything there is."""
        return Ingest(self.store, self.raw).run(in_paths([self.folder]))

    def stored(self) -> list[StoredExchange]:
        """Everything that was taken up, in the order in which it was."""
        keys = self.store.items.all_keys()
        return list(self.store.exchanges.load(keys).values()) if keys else []

    def exchanges(self, session: str) -> list[Exchange]:
        """What a session holds, in the order in which it was taken up."""
        number = self.store.sessions.find("claude-code", session)
        return [stored.exchange for stored in self.stored() if stored.session == number]

    def prompts(self, session: str = ORIGINAL) -> list[str]:
        """What was asked in a session."""
        return [exchange.prompt for exchange in self.exchanges(session)]

    def session(self, native_id: str = ORIGINAL) -> Session:
        """A session that was taken up."""
        number = self.store.sessions.find("claude-code", native_id)
        assert number is not None
        return self.store.sessions.load(number)

    def source(self, session: str = ORIGINAL, project: str = "shop") -> Source:
        """The current source of a transcript."""
        return self.store.sources.by_path()[self.path(session, project)]

    def copy(self, source: Source) -> bytes:
        """The archived bytes of a source."""
        with self.raw.open(source.archived) as file:
            return file.read()

    def dump(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row that a pass writes, table by table."""
        database = self.store._database
        return {
            name: [tuple(row) for row in database.rows(f"SELECT * FROM {name} ORDER BY {key}")]
            for name, key in TABLES.items()
        }

    def archive_files(self) -> dict[str, bytes]:
        """Every copy by its archive path."""
        root = self.home.archive
        files = (path for path in root.rglob("*") if path.is_file() and path.parent != root)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
