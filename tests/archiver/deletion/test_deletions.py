"""Deletions remove exactly the selected content, which stays deleted when it occurs again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.ingest import recovery
from palaver.archiver.redaction import scanner
from palaver.archiver.redaction.rules import Rule, rules
from palaver.archiver.store import source_table
from palaver.core import ids
from palaver.core.conversation import now
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionState
from palaver.core.errors import InvalidInput, SourceUnreadable

from ..formats.claude_code.claude_lines import jsonl
from ..history import FORK, ORIGINAL, History, talk
from .steps import OTHER, all_prompts, copied_bytes, exchange, forget, plan, undo


@pytest.fixture
def newer_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function that installs newer redaction rules with an additional kind of secret."""

    def install() -> None:
        known = (*rules(), Rule("corp", r"(CORPKEY-[a-z0-9]{16})", ("corpkey",)))
        monkeypatch.setattr(scanner, "rules", lambda: known)
        for module in (recovery, source_table):
            monkeypatch.setattr(module, "VERSION", "newer")
        _clear_rule_caches()

    yield install
    _clear_rule_caches()


def _clear_rule_caches() -> None:
    scanner.keyword_index.cache_clear()
    scanner.detectors.cache_clear()


@pytest.mark.parametrize("erase", [False, True])
def test_a_deletion_does_not_change_adjacent_exchanges(history: History, erase: bool) -> None:
    """After a deletion, the other exchanges of the session keep their keys, lines and offsets."""
    history.write(talk("one", "two", "three"))
    history.ingest()
    before = {each.key: each.exchange for each in history.stored() if each.exchange.prompt != "two?"}

    forget(history, exchange(history, "two?"), erase=erase)

    assert {each.key: each.exchange for each in history.stored()} == before
    assert (b"two" in copied_bytes(history)) is not erase


def test_erasing_a_session_includes_earlier_deletions(history: History) -> None:
    """Erasing a session also erases exchanges that were deleted before, even from copies of earlier file versions."""
    history.write(talk("one"), at=1)
    history.ingest()
    forget(history, ORIGINAL)
    history.write([*talk("two"), *talk("one")], at=2)
    history.ingest()
    forget(history, ORIGINAL, erase=True)

    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("erase", [False, True])
def test_a_session_can_grow_after_a_deletion(history: History, erase: bool) -> None:
    """New lines of a session are ingested after its last exchange, or the whole session, was deleted."""
    history.write(talk("one", "two"))
    history.ingest()
    forget(history, exchange(history, "two?"), erase=erase)
    history.append(talk("three"))
    history.ingest()

    assert history.prompts() == ["one?", "three?"]

    forget(history, ORIGINAL, erase=erase)
    assert all_prompts(history) == []
    history.append(talk("four"), at=9)
    history.ingest()

    assert all_prompts(history) == ["four?"]
    assert (b"three" in copied_bytes(history)) is not erase


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_deleted_content_does_not_come_back(history: History, erase: bool, whole: bool) -> None:
    """Deleted content stays deleted after a re-scan, and if its file is touched, copied, forked or rewritten."""
    path = history.write(talk("one", "secret"))
    history.ingest()
    forget(history, ORIGINAL if whole else exchange(history, "secret?"), erase=erase)
    left = [] if whole else ["one?"]
    ways: list[Callable[[], object]] = [
        lambda: None,
        lambda: history.touch(path, 50),
        lambda: history.write(path.read_bytes(), project="elsewhere"),
        lambda: history.write([*talk("one", "secret", session=FORK)], FORK),
        lambda: path.write_bytes(jsonl(talk("before")) + path.read_bytes()),
    ]

    for way in ways:
        way()
        history.ingest()
        assert "secret?" not in all_prompts(history)
        assert (b"secret" in copied_bytes(history)) <= (not erase)

    assert set(left) <= set(all_prompts(history))


def test_other_deletions_can_be_undone_after_an_erasure(history: History) -> None:
    """After an erasure, an earlier deletion in the same session can still be undone."""
    history.write(talk("one"), at=1)
    history.ingest()
    number = forget(history, ORIGINAL)
    history.write(talk("two", "one"), at=2)
    history.ingest()
    forget(history, exchange(history, "two?"), erase=True)
    assert all_prompts(history) == []

    undo(history, number)

    assert all_prompts(history) == ["one?"]
    assert b"two?" not in copied_bytes(history)


def test_each_undo_restores_its_own_deletion(history: History) -> None:
    """Overlapping deletions can be undone in any order, and each undo restores its own content."""
    history.write(talk("one", "two"))
    history.ingest()
    first = forget(history, exchange(history, "one?"))
    second = forget(history, ORIGINAL)

    undo(history, first)
    assert all_prompts(history) == ["one?"]
    undo(history, second)
    assert sorted(all_prompts(history)) == ["one?", "two?"]


def test_a_deletion_can_be_undone_after_a_later_one_expired(history: History) -> None:
    """A deletion in a session with two copies can be undone after a later deletion of the session has expired."""
    path = history.write(talk("one", "two"))
    history.ingest()
    history.write(path.read_bytes(), project="elsewhere", at=5)
    history.ingest()
    first = forget(history, exchange(history, "one?"))
    second = forget(history, ORIGINAL)

    Deletions(history.store, history.raw).expire(second)
    history.ingest()
    undo(history, first)

    assert all_prompts(history) == ["one?"]
    assert b"two?" not in copied_bytes(history)


def test_expiry_keeps_other_files_of_a_session(history: History) -> None:
    """When the deletion of one file expires, exchanges from other files of the same session stay."""
    path = history.write(talk("one", "two"))
    history.ingest()
    forgotten = history.source().archived
    path.write_bytes(jsonl(talk("alpha", "beta")))
    history.touch(path, 60)
    history.ingest()
    number = forget(history, forgotten)
    assert all_prompts(history) == ["alpha?", "beta?"]

    Deletions(history.store, history.raw).expire(number)
    history.ingest()

    assert all_prompts(history) == ["alpha?", "beta?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("erase", [False, True])
def test_newer_redaction_rules_do_not_restore_deleted_content(
    tmp_path: Path, newer_rules: Callable[[], None], erase: bool
) -> None:
    """Deleted text stays deleted when newer rules redact it differently."""
    with History(tmp_path) as history:
        lines = [
            *talk("with CORPKEY-abcdefgh12345678 one"),
            *talk("with CORPKEY-abcdefgh12345678 and ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 two"),
        ]
        # Without IDs, only its content identifies a line.
        for place, line in enumerate(lines):
            line.pop("uuid")
            line.pop("parentUuid", None)
            line["timestamp"] = f"2026-03-04T10:00:0{place}.000Z"
        path = history.write(lines)
        history.ingest()
        first, second = (ids.show("exchange", each.key) for each in history.stored())
        forget(history, first, erase=erase)
        forget(history, second)
        assert all_prompts(history) == []

        newer_rules()
        history.ingest()
        assert all_prompts(history) == []

        path.write_bytes(jsonl(talk("before")) + path.read_bytes())
        history.ingest()
        assert all_prompts(history) == ["before?"]


def test_undo_restores_everything(history: History) -> None:
    """Undo restores the exchanges, line counts and session. A deletion cannot be undone twice."""
    history.write(talk("one", "two"))
    history.ingest()
    before = sorted(history.prompts()), history.source().coverage, history.session()
    number = forget(history, exchange(history, "one?"))
    second = forget(history, ORIGINAL)

    undo(history, second)
    undo(history, number)

    assert (sorted(history.prompts()), history.source().coverage, history.session()) == before
    with pytest.raises(InvalidInput, match="undone"):
        undo(history, number)
    with pytest.raises(InvalidInput, match="never existed"):
        undo(history, second + 1)


def test_an_erasure_cannot_be_undone(history: History) -> None:
    """Undoing an erasure raises an error."""
    history.write(talk("one"))
    history.ingest()
    number = forget(history, ORIGINAL, erase=True)

    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)


def test_a_deletion_is_erased_after_thirty_days(history: History) -> None:
    """After 30 days a deletion is erased. Deletions that have not expired can still be undone."""
    history.write(talk("one", "two", "three"))
    history.ingest()
    deletions = Deletions(history.store, history.raw)
    number = forget(history, exchange(history, "one?"))
    later = forget(history, exchange(history, "two?"))
    assert [each.id for each in deletions.expired(now() + UNDO_PERIOD - 60_000)] == []
    assert {each.id for each in deletions.expired(now() + UNDO_PERIOD + 60_000)} == {number, later}

    deletions.expire(number)
    history.ingest()

    assert b"one?" not in copied_bytes(history)
    assert b"two?" in copied_bytes(history)
    undo(history, later)
    assert sorted(history.prompts()) == ["three?", "two?"]


def test_a_token_confirms_only_the_previewed_content(history: History) -> None:
    """A confirmation token is valid only for the previewed content: new content changes the token."""
    history.write(talk("one"))
    history.ingest()
    deletions = Deletions(history.store, history.raw)
    token = deletions.token(plan(history, DeletionRequest((ORIGINAL,))))
    assert deletions.token(plan(history, DeletionRequest((ORIGINAL,)))) == token

    history.append(talk("two"))
    history.ingest()

    assert deletions.token(plan(history, DeletionRequest((ORIGINAL,)))) != token


def test_deleted_content_is_not_exported(history: History, tmp_path: Path) -> None:
    """A file with deleted lines cannot be exported, and a deleted file is not found."""
    history.write(talk("one", "two"))
    history.ingest()
    forget(history, exchange(history, "one?"))
    originals = Exporter(history.store, history.raw)
    with pytest.raises(SourceUnreadable, match="deleted"), (tmp_path / "out").open("wb") as out:
        originals.write(history.source(), out)

    forget(history, ORIGINAL)

    with pytest.raises(InvalidInput):
        originals.find(ORIGINAL)


def test_deleted_lines_are_counted(history: History) -> None:
    """Coverage counts deleted lines, including lines that were erased from copies."""
    history.write(talk("one", "two"))
    history.ingest()
    for prompt, erase in (("one?", False), ("two?", True)):
        forget(history, exchange(history, prompt), erase=erase)
        assert history.store.sources.unaccounted() == []
    assert history.store.sources.all() == [] or history.source().coverage == {"forgotten": 4}
    assert history.store.tombstones.has_deletions()
    assert {each.state for each in history.store.tombstones.all()} == {DeletionState.KEPT, DeletionState.ERASING}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_other_exchanges_are_unchanged(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """No deletion changes an exchange that was not selected."""
    words = ["a1", "b2", "c3", "d4", "e5"]
    with History(tmp_path_factory.mktemp("any")) as history:
        for number, session in enumerate((ORIGINAL, OTHER)):
            history.write(talk(*(f"{word}-{number}" for word in words), session=session), session, at=number)
        history.write([*talk("a1-0", session=FORK), *talk("own", session=FORK)], FORK, at=5)
        history.ingest()
        known = {each.key: each.exchange for each in history.stored()}
        named = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1, max_size=len(known) - 1))
        erase = data.draw(st.booleans())

        forget(history, *(ids.show("exchange", key) for key in named), erase=erase)
        history.ingest()

        kept = {each.key: each.exchange for each in history.stored()}
        assert kept == {key: exchange for key, exchange in known.items() if key not in named}
        for key in named if erase else ():
            assert known[key].prompt.encode() not in copied_bytes(history)
