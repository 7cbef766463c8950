"""Databases and exports are ingested once in full. Later runs ingest only their changes."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.formats.registry import by_agent
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths, of_this_user
from palaver.archiver.lines import split
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.reports import IngestReport

from .formats.chatgpt.test_chatgpt import conversation, node
from .formats.container_files import database
from .formats.opencode.test_opencode import SCHEMA, put

HEADER = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}


class Archive:
    """Archive that ingests files, and asserts after each run that it is consistent."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.make()
        self.raw = RawArchive(self.home.archive)
        self.store = Store.create(self.home.database)

    def ingest(self, *paths: Path) -> IngestReport:
        found = Ingest(self.store, self.raw).run(in_paths(paths))
        self.check()
        return found

    def prompts(self) -> list[str]:
        return [each.exchange.prompt for each in self.store.exchanges.load(self.store.items.all_keys()).values()]

    def copies(self) -> list[str]:
        return sorted(self.store.sources.archived_names())

    def check(self) -> None:
        """Assert that each line of each copy is accounted for, and that the line range of each exchange is correct."""
        for name in self.copies():
            source = self.store.sources.by_archived(name)
            assert source is not None
            with self.raw.open(name) as file:
                lines = list(split(file))
            assert source.lines == len(lines) == sum(source.coverage.values())
            assert source.parsed == (lines[-1].end if lines else 0)
        for each in self.store.exchanges.load(self.store.items.all_keys()).values():
            span = each.exchange.span
            assert span.start_line <= min(turn.line for turn in each.exchange.turns) <= span.end_line


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path)
    yield made
    made.store.close()


def test_a_running_database_is_followed(archive: Archive, tmp_path: Path) -> None:
    """New messages of a running database extend its copies, and an unchanged database is not read."""
    path = tmp_path / "opencode.db"
    program = database(path, SCHEMA)
    put(program)

    assert archive.ingest(path).exchanges == 1
    assert archive.ingest(path).changed == 0
    more = {"id": "msg_3", "role": "user"}, [{"type": "text", "text": "And now?"}]
    put(program, messages=[more])
    assert archive.ingest(path).changed == 1

    assert archive.prompts() == ["Why?", "And now?"]
    assert archive.copies() == ["opencode/opencode.db/ses_1.jsonl"]
    program.close()


def test_a_reply_that_grows_is_one_exchange_in_one_copy(archive: Archive, tmp_path: Path) -> None:
    """A reply that grows fifty times remains one exchange in one copy."""
    path = tmp_path / "opencode.db"
    program = database(path, SCHEMA)
    put(program)
    for length in range(1, 51):
        text = json.dumps({"type": "text", "text": "word " * length})
        program.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = 'prt_msg_2_3'", (text, length))
        archive.ingest(path)
    program.close()

    (found,) = archive.store.exchanges.load(archive.store.items.all_keys()).values()
    assert found.exchange.answer == " ".join(["word"] * 50)
    assert len(archive.copies()) == 1
    with archive.raw.open(archive.copies()[0]) as file:
        assert len(file.readlines()) == 3


def test_an_earlier_message_that_grows_moves_later_exchanges(archive: Archive, tmp_path: Path) -> None:
    """When an earlier message grows, the whole database is parsed again and later exchanges move."""
    path = tmp_path / "opencode.db"
    program = database(path, SCHEMA)
    put(program)
    put(program, messages=[({"id": "msg_3", "role": "user"}, [{"type": "text", "text": "And now?"}])])
    archive.ingest(path)
    grown = json.dumps({"type": "text", "text": "Because. It was late."})
    program.execute("UPDATE part SET data = ?, time_updated = 2 WHERE id = 'prt_msg_2_3'", (grown,))
    archive.ingest(path)
    program.close()

    found = archive.store.exchanges.load(archive.store.items.all_keys()).values()
    assert [each.exchange.answer for each in found] == ["Because. It was late.", ""]


def test_a_later_export_extends_the_earlier_one(archive: Archive, tmp_path: Path) -> None:
    """A later export of any name, in a ZIP file or not, extends the earlier one. An older export adds nothing."""
    first, second = node("a", "root", "user", "One?"), node("b", "a", "user", "Two?")
    (tmp_path / "may.json").write_text(json.dumps([conversation(first)]))
    with zipfile.ZipFile(tmp_path / "june.zip", "w") as pack:
        pack.writestr("conversations.json", json.dumps([conversation(first, second, title="Renamed")]))

    for name in ("may.json", "june.zip", "may.json"):
        archive.ingest(tmp_path / name)
        archive.store.containers.keep(tmp_path / name, 0)

    assert archive.prompts() == ["One?", "Two?"]
    assert archive.copies() == ["chatgpt/conversations/c1.jsonl"]


def test_an_unreadable_database_is_reported_and_the_others_are_ingested(archive: Archive, tmp_path: Path) -> None:
    """The problem with an unreadable database is reported until the database can be read."""
    path = tmp_path / "opencode.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    (tmp_path / "a.json").write_text(json.dumps([conversation(node("a", "root", "user", "One?"))]))

    found = archive.ingest(tmp_path)

    assert [problem.path for problem in found.problems] == [path]
    assert [where for where, _ in archive.store.sources.problems()] == [path]
    assert archive.prompts() == ["One?"]
    path.unlink()
    database(path, SCHEMA).close()
    assert archive.ingest(tmp_path).problems == []
    assert archive.store.sources.problems() == []


def test_tables_of_a_newer_version_are_reported_until_they_are_read(archive: Archive, tmp_path: Path) -> None:
    """The readable sessions of a database are archived, and its status names the tables that were not read."""
    path = tmp_path / "opencode.db"
    newer = "CREATE TABLE session_v9 (id TEXT); INSERT INTO session_v9 VALUES ('s');"
    program = database(path, SCHEMA + newer)
    put(program)

    found = [archive.ingest(tmp_path), archive.ingest(tmp_path)]

    assert [[problem.path for problem in each.problems] for each in found] == [[path], []]
    assert [each.changed for each in found] == [1, 0]
    [(where, reason)] = archive.store.sources.problems()
    assert (where, "table session_v9" in reason) == (path, True)
    assert archive.prompts() == ["Why?"]

    program.execute("DROP TABLE session_v9")
    program.close()
    assert archive.ingest(tmp_path).problems == []
    assert archive.store.sources.problems() == []


def document(*texts: str) -> str:
    return json.dumps(
        {**HEADER, "messages": [{"id": f"m{n}", "type": "user", "content": t} for n, t in enumerate(texts)]}
    )


def test_a_rewritten_document_has_one_copy(archive: Archive, tmp_path: Path) -> None:
    """A rewritten document has one copy if it contains all earlier content. Otherwise both copies stay."""
    path = tmp_path / "chats" / "session-2026-01-01T00-00-00000000.json"
    path.parent.mkdir()
    for texts in (["One?"], ["One?", "Two?"], ["One?", "Two?", "Three?"]):
        path.write_text(document(*texts))
        archive.ingest(path)
    copies = archive.copies()
    assert (archive.home.archive / copies[0]).read_bytes() == path.read_bytes()
    assert archive.prompts() == ["One?", "Two?", "Three?"]

    path.write_text(document("One?", "Other?"))
    archive.ingest(path)

    assert len(copies) == 1
    assert len(archive.copies()) == 2
    assert sorted(archive.prompts()) == ["One?", "Other?", "Three?", "Two?"]


def test_containers_of_the_user_are_found(home: Path, archive: Archive) -> None:
    """Databases in the user's standard folders are found without being named."""
    program = database(home / ".local" / "share" / "opencode" / "opencode.db", SCHEMA)
    put(program)
    program.close()

    assert [each.container_format for each in of_this_user()] == [by_agent("opencode")]
    assert Ingest(archive.store, archive.raw).run(of_this_user()).exchanges == 1
