"""Synthetic history of transcripts that tests extend and change, with its archive."""

# pyright: reportPrivateUsage=false

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import NAMESPACE_OID, uuid5

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Source, Store, StoredExchange
from palaver.core.conversation import Exchange, Session
from palaver.core.home import Home
from palaver.core.reports import IngestReport

from .formats.claude_code.claude_lines import assistant, jsonl, text, user

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


def named(name: str) -> str:
    """Return the record ID with this name, such as `one-asked`. Only UUIDs are unique across sessions."""
    return str(uuid5(NAMESPACE_OID, name))


def talk(*words: str, session: str = ORIGINAL, project: str = "/home/demo/shop") -> list[dict[str, Any]]:
    """Return one exchange per word: the prompt `word?` and the answer `word!`, with record IDs made from the word."""
    place = {"sessionId": session, "cwd": project, "gitBranch": "main"}
    lines: list[dict[str, Any]] = []
    for word in words:
        lines += [
            user(f"{word}?", uuid=named(f"{word}-asked"), **place),
            assistant(
                text(f"{word}!"),
                id=f"msg-{word}",
                uuid=named(f"{word}-answered"),
                parentUuid=named(f"{word}-asked"),
                **place,
            ),
        ]
    return lines


class History:
    """Transcripts in the folder `projects`, and the home beside it that archives them."""

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
        """Return the path of a session's transcript."""
        return self.folder / project / f"{session}.jsonl"

    def write(
        self, data: bytes | Sequence[object], session: str = ORIGINAL, *, project: str = "shop", at: int = 1
    ) -> Path:
        """Write a transcript whose modification time is `at` seconds after a fixed time."""
        path = self.path(session, project)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else jsonl(data))
        return self.touch(path, at)

    def append(self, data: bytes | Sequence[object], session: str = ORIGINAL, *, at: int = 2) -> Path:
        """Append to a transcript."""
        path = self.path(session)
        with path.open("ab") as file:
            file.write(data if isinstance(data, bytes) else jsonl(data))
        return self.touch(path, at)

    def touch(self, path: Path, at: int) -> Path:
        """Set the modification time of a file."""
        os.utime(path, ns=(0, (1_700_000_000 + at) * 10**9))
        return path

    def ingest(self) -> IngestReport:
        """Run one ingest run over all transcripts."""
        return Ingest(self.store, self.raw).run(in_paths([self.folder]))

    def stored(self) -> list[StoredExchange]:
        """Return all ingested exchanges in ingest order."""
        keys = self.store.items.all_keys()
        return list(self.store.exchanges.load(keys).values()) if keys else []

    def exchanges(self, session: str) -> list[Exchange]:
        """Return the exchanges of a session in ingest order."""
        numbers = [number for number, each in self.store.sessions.all().items() if each.native_id == session]
        return [stored.exchange for stored in self.stored() if stored.session in numbers]

    def prompts(self, session: str = ORIGINAL) -> list[str]:
        """Return the prompts of a session."""
        return [exchange.prompt for exchange in self.exchanges(session)]

    def session(self, native_id: str = ORIGINAL) -> Session:
        """Return an ingested session."""
        number = self.store.sessions.find("claude-code", native_id)
        assert number is not None
        return self.store.sessions.load(number)

    def source(self, session: str = ORIGINAL, project: str = "shop") -> Source:
        """Return the current source row of a transcript."""
        return self.store.sources.by_path()[self.path(session, project)]

    def copy(self, source: Source) -> bytes:
        """Return the archived bytes of a source file."""
        with self.raw.open(source.archived) as file:
            return file.read()

    def dump(self) -> dict[str, list[tuple[object, ...]]]:
        """Return every row that an ingest run writes, per table."""
        database = self.store._database
        return {
            name: [tuple(row) for row in database.rows(f"SELECT * FROM {name} ORDER BY {key}")]
            for name, key in TABLES.items()
        }

    def archive_files(self) -> dict[str, bytes]:
        """Return the bytes of every raw copy by its archive path."""
        root = self.home.archive
        files = (path for path in root.rglob("*") if path.is_file() and path.parent != root)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
