"""Tests of archiver/store/database.py."""

import os
import random
from contextlib import closing
from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.archiver.store.database import Database
from palaver.archiver.store.document_table import Document
from palaver.core.document import DocumentFilter
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.core.reports import Injection

from ..redaction.planted import TOKENS

TOKEN = TOKENS["github-pat"](random.Random(4))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a new home with a key."""
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.key()
    return home


def at_rest(home: Home) -> list[str]:
    """Return the files of a home that contain the token."""
    files = [path for path in home.root.rglob("*") if path.is_file()]
    return [path.name for path in files if TOKEN.encode() in path.read_bytes()]


def test_no_path_and_no_session_name_keeps_a_secret(home: Home, tmp_path: Path) -> None:
    """Secrets in the paths of documents and in the names of sessions are not readable in the home."""
    file = tmp_path / f"notes {TOKEN}" / f"plan-{TOKEN}.md"
    with Store.create(home.database) as store:
        with store.transaction():
            store.injections.add(Injection(1, HookEvent.PROMPT, f"s-{TOKEN}", f"project:{TOKEN}", 5, ("obs-1",)))
            store.sources.report(file, "unreadable")
            store.documents.replace(Document(file, "project:x", "markdown", b"1", 1), [])

        assert [stored.source_file for stored in store.documents.files(DocumentFilter(under=file.parent))] == [file]
        assert [path for path, _ in store.sources.problems()] == [file]
        assert [entry.items for entry in store.injections.of_session(f"s-{TOKEN}")] == [("obs-1",)]

    assert at_rest(home) == []


def test_stored_names_are_renewed_once(home: Home, tmp_path: Path) -> None:
    """Names that older rules left readable are encrypted when the archive is opened, and their rows are still found."""
    file = tmp_path / f"{TOKEN}.jsonl"
    Store.create(home.database).close()
    with closing(Database.open(home.database)) as database, database.transaction():
        database.run("INSERT INTO problem VALUES (?, 'old', 1)", (os.fsencode(file),))
        database.run("DELETE FROM redacted_names")
    assert at_rest(home)

    with Store.open(home.database) as store:
        assert store.sources.problems() == [(file, "old")]
    with Store.open(home.database) as store, store.transaction():
        store.sources.report(file, None)
        assert store.sources.problems() == []

    assert at_rest(home) == []
