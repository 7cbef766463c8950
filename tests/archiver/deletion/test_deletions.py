"""Deletions remove exactly the selected content, which stays deleted when it occurs again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.copies.compressor import CopyCompressor
from palaver.archiver.copies.copy_verification import CopyVerifier
from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.deletion.copy_eraser import CopyEraser
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.ingest import rereading
from palaver.archiver.redaction import scanner
from palaver.archiver.redaction.rule import Rule
from palaver.archiver.redaction.rules import rules
from palaver.archiver.store import source_table
from palaver.core import ids
from palaver.core.clock import now
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionState
from palaver.core.errors import InvalidInput, SourceUnreadable

from ..formats.claude_code.claude_lines import jsonl
from ..history import FORK, ORIGINAL, History, talk
from .steps import OTHER, all_prompts, copied_bytes, exchange, forget, plan, undo


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


@pytest.fixture
def newer_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function that installs newer redaction rules with an additional kind of secret."""

    def install() -> None:
        known = (*rules(), Rule("corp", r"(CORPKEY-[a-z0-9]{16})", ("corpkey",)))
        monkeypatch.setattr(scanner, "rules", lambda: known)
        for module in (rereading, source_table):
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


def test_erasing_a_session_removes_its_copies_and_rows(history: History) -> None:
    """Erasing a session removes its row and all files of its copy, including damaged and unfinished files."""
    path = history.write(talk("one"))
    history.write(talk("other", session=OTHER), OTHER)
    history.ingest()
    CopyCompressor(history.store, history.raw).run()
    damaged = history.home.archive / f"{history.source().archived}.sealed.zst.damaged"
    damaged.write_bytes(b"one")
    unfinished = history.home.archive / ".unfinished" / "left"
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.write_bytes(b"one")

    forget(history, ORIGINAL[:8], erase=True)

    assert not any("one" in name or ORIGINAL in name for name in history.archive_files())
    assert not damaged.exists()
    assert not unfinished.exists()
    assert history.store.sessions.find("claude-code", ORIGINAL) is None
    assert history.prompts(OTHER) == ["other?"]
    assert path.exists()


def test_a_compressed_copy_loses_only_erased_lines(history: History) -> None:
    """An erasure removes only the erased lines from a compressed copy. The other lines stay readable."""
    history.write(talk("one", "two"))
    history.ingest()
    CopyCompressor(history.store, history.raw).run()

    forget(history, exchange(history, "one?"), erase=True)

    assert b"one" not in history.copy(history.source())
    assert history.prompts() == ["two?"]
    assert history.copy(history.source()).count(b"\n") == 4


def record_erasure(history: History, target: str) -> Copy:
    """Compress the copy and record an erasure, but erase no line yet. Return the copy."""
    CopyCompressor(history.store, history.raw).run()
    wanted = DeletionRequest(targets=(target,), erase=True)
    Deletions(history.store, history.raw).delete(plan(history, wanted))
    return Copy(history.raw.root, history.source().archived)


def test_a_damaged_copy_does_not_block_an_ingest(history: History) -> None:
    """Each ingest reports a damaged copy with lines to erase, and erases them once the copy is readable."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.write(talk("new", session=FORK), FORK, at=5)

    for _ in range(2):
        problems = history.ingest().problems
        assert {problem.path for problem in problems} == {copy.compressed_path}
        assert all(problem.hint for problem in problems)
        assert history.store.tombstones.scheduled_erasures() == {copy.archived: False}
    assert all_prompts(history) == ["two?", "new?"]

    copy.compressed_path.write_bytes(whole)
    assert history.ingest().problems == []
    assert b"one?" not in history.copy(history.source())


@pytest.mark.parametrize("grown", [False, True])
def test_an_interrupted_ingest_leaves_no_erased_line(
    history: History, monkeypatch: pytest.MonkeyPatch, grown: bool
) -> None:
    """If an ingest copies erased lines and is interrupted, the next run erases them, even if the file is gone."""
    history.write(talk("one"), at=1)
    path = history.path(FORK)
    if grown:
        history.write(talk("begun", session=FORK), FORK, at=2)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    history.write(talk(*["begun"] * grown, "one", "more", session=FORK), FORK, at=3)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CopyEraser, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            history.ingest()
    assert b"one?" in copied_bytes(history)
    path.unlink()
    history.ingest()

    assert b"one?" not in copied_bytes(history)
    assert (b"begun?" in copied_bytes(history)) is grown
    assert history.store.tombstones.scheduled_erasures() == {}


def test_verification_distinguishes_erased_lines_from_damage(history: History) -> None:
    """Verification accepts copies without their erased lines, and detects damage in any copy."""
    history.write(talk("one"), at=1)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=2)
    history.write(talk("other", session=OTHER), OTHER, at=3)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    inspection = CopyVerifier(history.store, history.raw)
    assert list(inspection.check_all()) == []
    copy = Copy(history.raw.root, history.source(OTHER).archived).path
    copy.write_bytes(copy.read_bytes().replace(b"other?", b"otter?"))

    [fault] = inspection.check_all()

    assert fault.source.archived == history.source(OTHER).archived
    assert inspection.repair(fault.source)
    fork_copy = Copy(history.raw.root, history.source(FORK).archived).path
    fork_copy.write_bytes(fork_copy.read_bytes().replace(b"apart?", b"apert?"))
    assert not inspection.repair(history.source(FORK))
    assert b"one?" not in copied_bytes(history)


def test_the_last_file_of_a_copy_is_kept(history: History) -> None:
    """If only a damaged file of a copy is left, the erasure keeps it, reports it and stays unfinished."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")
    history.write(talk("new", session=FORK), FORK, at=5)

    reasons = {problem.path: problem.reason for problem in history.ingest().problems}
    assert "other files of this copy" in reasons[copy.damaged_files()[0]]
    assert len(copy.damaged_files()) == 1
    assert history.store.tombstones.scheduled_erasures() == {copy.archived: False}


@pytest.mark.parametrize("lost", [slice(None, -10), slice(None, -200)])
def test_lines_are_erased_from_a_compressed_copy_without_its_table(history: History, lost: slice) -> None:
    """If the table of a compressed copy is lost, its lines are erased, or the erasure is reported as unfinished."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    history.write(talk("new", session=FORK), FORK, at=5)
    copy.compressed_path.write_bytes(copy.compressed_path.read_bytes()[lost])

    problems = history.ingest().problems

    if history.store.tombstones.scheduled_erasures():
        assert problems
    else:
        assert b"one?" not in copied_bytes(history)
        assert b"two?" in copied_bytes(history)
    assert bool(problems) == (lost.stop == -200)


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


def test_deleted_content_can_be_selected_only_for_erasure(history: History) -> None:
    """Deleted sessions and deleted text can be selected for erasure, but not for another deletion."""
    history.write(talk("one", "canary"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()
    number = forget(history, exchange(history, "canary?"))
    forget(history, OTHER)
    with pytest.raises(InvalidInput, match="No match in the archive for"):
        plan(history, DeletionRequest((OTHER,)))
    assert plan(history, DeletionRequest(mentions="canary")).sources == []

    forget(history, OTHER, erase=True)
    forget(history, mentions="canary", erase=True)

    assert b"other?" not in copied_bytes(history)
    assert b"canary" not in copied_bytes(history)
    assert all_prompts(history) == ["one?"]
    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)


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


def test_a_title_is_deleted_with_its_prompt(history: History) -> None:
    """If the prompt that is a session's title is deleted, the next remaining prompt becomes the title."""
    history.write(talk("secret", "two"))
    history.ingest()
    assert history.session().title == "secret?"

    forget(history, exchange(history, "secret?"))

    assert history.session().title == "two?"


def test_mentions_selects_exchanges_by_text(history: History) -> None:
    """`mentions` selects the exchanges that contain a text, ignoring case."""
    history.write(talk("one", "Canary"), at=1)
    history.write(talk("other", "xCANARYx", session=OTHER), OTHER, at=2)
    history.ingest()

    forget(history, mentions="canary", erase=True)

    assert sorted(all_prompts(history)) == ["one?", "other?"]
    assert b"canary" not in copied_bytes(history).lower()


def test_a_path_with_lines_selects_exchanges(history: History) -> None:
    """A path with a line range selects the exchanges on these lines."""
    path = history.write(talk("one", "two", "three"))
    history.ingest()

    forget(history, f"{path}:3-4")

    assert history.prompts() == ["one?", "three?"]


def test_unknown_names_are_refused(history: History) -> None:
    """Unknown names, IDs of fewer than four characters and empty requests raise an error."""
    history.write(talk("one"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()

    for target in ("ex-999", "mem_1", "obs-1", "nowhere.jsonl", "111", "../../etc/passwd", "'; DROP TABLE item"):
        with pytest.raises(InvalidInput, match="No match in the archive for"):
            plan(history, DeletionRequest((target,)))
    with pytest.raises(InvalidInput, match="No content to delete was given"):
        plan(history, DeletionRequest())


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


def test_a_copy_without_erased_lines_is_not_rewritten(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingesting a file without erased lines does not rewrite its copy, even if the archive has erasures."""
    history.write(talk("one"), at=1)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    cleaned: list[Copy] = []

    def record(_: CopyEraser, copy: Copy, __: object) -> None:
        cleaned.append(copy)

    monkeypatch.setattr(CopyEraser, "_erase_lines", record)
    history.write(talk("other", session=OTHER), OTHER, at=3)

    assert history.ingest().problems == []

    assert cleaned == []
    assert history.store.tombstones.scheduled_erasures() == {}


def test_lines_are_erased_again_from_a_replaced_copy(history: History) -> None:
    """If a damaged copy is copied again from the agent's file, its erased lines are erased again."""
    history.write(talk("one", "two"), at=1)
    history.ingest()
    forget(history, exchange(history, "one?"), erase=True)
    CopyCompressor(history.store, history.raw).run()
    copy = Copy(history.raw.root, history.source().archived)
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.append(talk("three"), at=9)
    assert history.ingest().problems == []

    assert b"one?" not in history.copy(history.source())
    assert sorted(all_prompts(history)) == ["three?", "two?"]
