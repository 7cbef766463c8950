"""Each session of a container has a raw copy, which grows with the session."""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.copies.raw_copy import Copy, RawArchive
from palaver.archiver.formats import ContainedSession
from palaver.archiver.formats.claude_ai import ClaudeAi
from palaver.archiver.formats.containers import exact_json, file_name, fingerprint, message_line
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.ingest_jobs import UpdatedCopy, update_copy
from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.errors import SourceUnreadable

from ..history import History

KNOWN = ClaudeAi()
State = Sequence[tuple[str, str]]
"""IDs and texts of messages."""


def message(number: str, text: str) -> bytes:
    return message_line(number, message={"uuid": number, "sender": "assistant", "text": text})


def updated(
    copy: Copy, rows: Callable[[], Iterable[bytes]], before_write: Callable[[], None] = lambda: None
) -> UpdatedCopy:
    """Update a copy from a session with these lines."""
    session = ContainedSession(Path("x"), "x", 1, 0, rows)
    return RawArchive(copy.root).update(
        copy.archived, lambda made: update_copy(session, KNOWN, made, None, before_write)
    )


def update(copy: Copy, state: State) -> bool:
    rows = [message(*each) for each in state]
    return updated(copy, lambda: rows).appended


def messages(copy: Copy) -> list[tuple[str, str]]:
    with copy.open() as file:
        records = [orjson.loads(line) for line in file]
    return [(record["id"], record["message"]["text"]) for record in records]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path, "claude-ai/c/a.jsonl")


def test_a_new_message_is_appended(copy: Copy) -> None:
    """A new message does not change the earlier bytes of the copy."""
    update(copy, [("a", "Hi")])
    before = copy.path.read_bytes()

    assert update(copy, [("a", "Hi"), ("b", "Hello")])
    assert copy.path.read_bytes() == before + message("b", "Hello")


def test_a_growing_message_is_stored_once(copy: Copy) -> None:
    """A message that grew fifty times is in the copy once, in its last version."""
    for length in range(1, 51):
        update(copy, [("a", "Hi"), ("b", "x" * length)])

    assert messages(copy) == [("a", "Hi"), ("b", "x" * 50)]


def test_a_changed_message_keeps_its_earlier_version(copy: Copy) -> None:
    """A new version of a message is added once, after the old version."""
    update(copy, [("a", "Use Postgres"), ("b", "Fine")])
    for _ in range(3):
        update(copy, [("a", "Use SQLite"), ("b", "Fine")])

    assert messages(copy) == [("a", "Use Postgres"), ("b", "Fine"), ("a", "Use SQLite")]


def test_a_deleted_message_stays(copy: Copy) -> None:
    """A message that the agent deletes stays in the copy, and later messages follow it."""
    update(copy, [("a", "1"), ("b", "2")])
    update(copy, [("a", "1")])
    update(copy, [("a", "1"), ("c", "3")])

    assert messages(copy) == [("a", "1"), ("b", "2"), ("c", "3")]


def test_an_incomplete_line_is_written_again(copy: Copy) -> None:
    """A line that an interrupted run left incomplete is replaced by the complete line."""
    update(copy, [("a", "Hi")])
    with copy.path.open("ab") as file:
        file.write(message("b", "Hello")[:20])

    update(copy, [("a", "Hi"), ("b", "Hello")])

    assert messages(copy) == [("a", "Hi"), ("b", "Hello")]


def test_a_damaged_copy_stays_until_it_is_replaced(copy: Copy) -> None:
    """A damaged copy stays unchanged on a full disk. Otherwise a new copy replaces it and the damaged file is kept."""
    update(copy, [("a", "Hi")])
    copy.compress()
    broken = copy.compressed_path.read_bytes()[:20]
    copy.compressed_path.write_bytes(broken)
    rows = [message("a", "Hi"), message("b", "Hello")]

    def full() -> Iterator[bytes]:
        yield rows[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        updated(copy, full)
    assert copy.compressed_path.read_bytes() == broken

    assert update(copy, [("a", "Hi"), ("b", "Hello")])
    assert messages(copy) == [("a", "Hi"), ("b", "Hello")]
    assert [path.read_bytes() for path in copy.damaged_files()] == [broken]


def test_the_stored_checksums_are_dropped_only_before_a_write(copy: Copy) -> None:
    """A container that is unreadable or has nothing new keeps the stored checksums of its copy."""
    dropped = list[str]()

    def update_from(rows: Callable[[], Iterator[bytes]]) -> None:
        updated(copy, rows, lambda: dropped.append("sums"))

    def lines_then_error() -> Iterator[bytes]:
        yield message("b", "Hello")
        raise SourceUnreadable(Path("x"), "it changed meanwhile")

    update(copy, [("a", "Hi")])
    update_from(lambda: iter([message("a", "Hi")]))
    with pytest.raises(SourceUnreadable):
        update_from(lines_then_error)
    assert dropped == []

    update_from(lambda: iter([message("b", "Hello")]))
    assert dropped == ["sums"]


@pytest.mark.parametrize("later", [[("a", "Hi"), ("b", "!")], [("a", "Hi there")]], ids=["appended", "grown"])
def test_a_compressed_copy_is_decompressed_when_its_session_grows(copy: Copy, later: State) -> None:
    """A compressed copy is decompressed when its session grows."""
    update(copy, [("a", "Hi")])
    copy.compress()

    update(copy, later)

    assert messages(copy) == later
    assert copy.path.exists()
    assert not copy.compressed_path.exists()


STATES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.text("xy", min_size=1, max_size=3)), max_size=4), max_size=5
)


@given(STATES)
def test_no_message_is_ever_lost(tmp_path_factory: pytest.TempPathFactory, states: list[State]) -> None:
    """After any changes of a session, its copy contains each message or an extension of it."""
    copy = Copy(tmp_path_factory.mktemp("archive"), "claude-ai/c/a.jsonl")
    seen: set[tuple[str, str]] = set()
    for state in states:
        update(copy, state)
        size = copy.path.stat().st_size
        update(copy, state)
        assert copy.path.stat().st_size == size

        seen |= set(state)
        now = messages(copy)
        assert all(any(number == n and text.startswith(words) for n, text in now) for number, words in seen)
        assert len(now) == len(set(now))


def test_json_of_a_database_is_copied_exactly() -> None:
    """JSON values of a database keep their bytes and whitespace. Other values become text."""
    assert message_line("a", value=exact_json(b'{ "n": 1.10 }')) == b'{"id":"a","value":{ "n": 1.10 }}\n'
    assert message_line("a", value=exact_json('{"a":\n1}')).count(b"\n") == 1
    assert orjson.loads(message_line("a", value=exact_json(b'{"a": \xff'))) == {"id": "a", "value": '{"a": \ufffd'}
    assert orjson.loads(message_line("a", value=exact_json(None))) == {"id": "a", "value": None}


@given(st.text(st.characters(), min_size=1))
def test_any_id_gives_a_valid_file_name(number: str) -> None:
    """Any conversation ID yields a file name without folders and a 63-bit fingerprint."""
    name = file_name(number)

    assert Path(name).name == name
    assert len(name.encode()) < 255
    assert 0 <= fingerprint(number) < 2**63


def test_names_of_copies_contain_no_secret(history: History) -> None:
    """A secret in a conversation's ID is redacted in the copy's name, and the next run finds the same copy."""
    secret = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    seen: dict[str, object] = {
        "uuid": "m1",
        "sender": "human",
        "text": "Hello?",
        "content": [],
        "created_at": "2026-03-04T10:00:00Z",
    }
    export = history.folder / "conversations.json"
    export.write_bytes(orjson.dumps([{"uuid": secret, "name": "Greeting", "chat_messages": [seen]}]))
    for _ in range(2):
        assert not Ingest(history.store, history.raw).run(in_paths([export])).problems
        export.touch()

    [copy] = history.archive_files()
    assert copy.startswith("claude-ai/conversations/")
    assert secret not in copy
