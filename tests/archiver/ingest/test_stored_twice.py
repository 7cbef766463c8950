"""Conversations that an agent stored in a database and, with less detail, in a file."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core import ids
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home

from ..formats.container_files import database

NAME = "0b7d0000-0000-4000-8000-00000000000a"
TABLE = "CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);"
PUT = "INSERT OR REPLACE INTO cursorDiskKV VALUES (?, ?)"


class Twice:
    """An archive, and a conversation of Cursor in a database and in an agent transcript."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.make()
        self.raw, self.store = RawArchive(self.home.archive), Store.create(self.home.database)
        self.file = root / "projects" / "home-demo-shop" / "agent-transcripts" / NAME / f"{NAME}.jsonl"
        self.file.parent.mkdir(parents=True)
        self.editor = root / "globalStorage" / "state.vscdb"
        self.program: apsw.Connection = database(self.editor, TABLE)

    def write_file(self, prompts: Sequence[str], reply: str = "Done") -> None:
        texts = [(role, text) for prompt in prompts for role, text in (("user", prompt), ("assistant", reply))]
        rows = [{"role": role, "message": {"content": [{"type": "text", "text": text}]}} for role, text in texts]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_database(self, prompts: Sequence[str], reply: str = "Done in full: ") -> None:
        self.program.execute(PUT, (f"composerData:{NAME}", json.dumps({"name": "Shop"})))
        for number, prompt in enumerate(prompts):
            for kind, text in ((1, prompt), (2, f"{reply}{prompt}")):
                bubble = {"type": kind, "text": text, "createdAt": f"2026-05-04T09:0{number}:0{kind}Z"}
                self.program.execute(PUT, (f"bubbleId:{NAME}:b{number}{kind}", json.dumps(bubble)))

    def ingest(self, *paths: Path) -> None:
        assert Ingest(self.store, self.raw).run(in_paths(paths)).problems == []

    def forget(self, prompt: str, *, erase: bool = False) -> int:
        deletions, key = Deletions(self.store, self.raw), self.exchanges()[prompt]
        return deletions.delete(deletions.plan(DeletionRequest((ids.show("exchange", key),), erase=erase)))

    def exchanges(self) -> dict[str, int]:
        """Return the key of each exchange by its prompt. Fail if two exchanges have the same prompt."""
        stored = self.store.exchanges.load(self.store.items.all_keys()).values()
        found = {each.exchange.prompt: each.key for each in stored}
        assert len(found) == len(stored)
        return found

    def replies(self) -> list[str]:
        stored = self.store.exchanges.load(self.store.items.all_keys()).values()
        return [each.exchange.answer for each in stored]


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[Twice]:
    made = Twice(tmp_path)
    yield made
    made.program.close()
    made.store.close()


def test_the_database_is_preferred_whichever_is_archived_first(twice: Twice) -> None:
    """Each prompt is archived once, with the reply in the database. An exchange that only the file has is kept."""
    orders: list[tuple[Callable[[], None], ...]] = [
        (lambda: twice.ingest(twice.file), lambda: twice.ingest(twice.editor)),
        (lambda: twice.ingest(twice.editor), lambda: twice.ingest(twice.file)),
    ]
    twice.write_file(["One?", "Two?", "Two?", "Only here?"])
    twice.write_database(["One?", "Two?", "Two?"])
    for first, second in orders:
        first()
        second()
        stored = twice.store.exchanges.load(twice.store.items.all_keys()).values()

        assert sorted(each.exchange.answer for each in stored) == [
            *("Done", "Done in full: One?", "Done in full: Two?", "Done in full: Two?"),
        ]
        assert {each.session for each in stored} == {1}
        assert [each.exchange.started is None for each in stored].count(True) == 1
    twice.write_database(["One?", "Two?", "Two?", "Only here?"])
    twice.ingest(twice.editor)

    assert sorted(twice.replies()) == [
        *("Done in full: One?", "Done in full: Only here?", "Done in full: Two?", "Done in full: Two?"),
    ]
    assert twice.store.sources.unaccounted() == []


def test_the_database_is_preferred_if_the_file_has_the_same_replies(twice: Twice) -> None:
    """The file is never the original of the database, so the exchanges have the times of the database."""
    twice.write_file(["One?", "Two?"], reply="On it: One?")
    twice.write_database(["One?", "Two?"], reply="On it: ")
    for path in (twice.file, twice.editor, twice.file):
        twice.ingest(path)
        twice.store.sources.outdate()
    twice.ingest(twice.file, twice.editor)
    stored = twice.store.exchanges.load(twice.store.items.all_keys()).values()

    assert sorted(each.exchange.prompt for each in stored) == ["One?", "Two?"]
    assert None not in {each.exchange.started for each in stored}
    assert twice.store.sources.unaccounted() == []


def test_a_growing_file_adds_nothing_that_the_database_has(twice: Twice) -> None:
    """A file is compared with the database each time it has grown."""
    prompts = ["One?", "Two?", "Three?", "Four?"]
    for count in range(1, 5):
        twice.write_file(prompts[:count])
        twice.ingest(twice.file)
        twice.write_database(prompts[:count])
        twice.ingest(twice.editor)

    assert sorted(twice.exchanges()) == sorted(prompts)
    assert twice.store.sources.unaccounted() == []


def test_the_session_is_read_from_the_database(twice: Twice) -> None:
    """Reading the session shows the database's copy, even if the file has more lines."""
    twice.write_file(["One?", "Two?"])
    twice.write_database(["One?", "Two?"])
    twice.ingest(twice.file, twice.editor)
    twice.file.write_text(twice.file.read_text() + '{"type": "turn_ended"}\n' * 9)
    twice.ingest(twice.file)
    source = twice.store.sources.main(1)

    assert source is not None
    assert source.archived.startswith("cursor/globalStorage/")


@pytest.mark.parametrize("erase", [False, True])
def test_a_deleted_exchange_does_not_return_from_the_file(twice: Twice, erase: bool) -> None:
    """Deleting an exchange of the database also deletes its lines in the file, until the deletion is undone."""
    twice.write_file(["One?", "Two?"])
    twice.write_database(["One?", "Two?"])
    twice.ingest(twice.file, twice.editor)

    number = twice.forget("One?", erase=erase)
    twice.ingest(twice.file, twice.editor)
    twice.store.sources.outdate()
    twice.ingest(twice.file, twice.editor)

    assert list(twice.exchanges()) == ["Two?"]
    copies = b"".join(path.read_bytes() for path in twice.home.archive.rglob("*.jsonl"))
    assert (b"One?" in copies) is not erase
    twice.forget("Two?", erase=erase)
    twice.ingest(twice.file, twice.editor)
    assert twice.exchanges() == {}
    if not erase:
        Deletions(twice.store, twice.raw).undo(number)
        twice.ingest(twice.file, twice.editor)
        assert twice.exchanges().keys() == {"One?"}
        assert twice.replies() == ["Done in full: One?"]
