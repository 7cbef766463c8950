"""Deletions: what goes is exactly what was named, it stays gone wherever it comes from, and nothing else changes."""

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

from ..formats.claude_code.claude_lines import written
from ..history import FORK, ORIGINAL, History, talk
from .steps import OTHER, asked, exchange, forget, plan, said, undo


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


@pytest.fixture
def newer_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Called, it gives out rules that know one more kind of secret."""

    def give_out() -> None:
        known = (*rules(), Rule("corp", r"(CORPKEY-[a-z0-9]{16})", ("corpkey",)))
        monkeypatch.setattr(scanner, "rules", lambda: known)
        for module in (rereading, source_table):
            monkeypatch.setattr(module, "VERSION", "newer")
        _forget_rules()

    yield give_out
    _forget_rules()


def _forget_rules() -> None:
    scanner.keyword_index.cache_clear()
    scanner.detectors.cache_clear()


@pytest.mark.parametrize("erase", [False, True])
def test_a_forgotten_exchange_is_gone_and_its_neighbours_stay(history: History, erase: bool) -> None:
    """Of a session only the exchange that was named goes; the others keep their keys, lines and places in the file."""
    history.write(talk("one", "two", "three"))
    history.ingest()
    before = {each.key: each.exchange for each in history.stored() if each.exchange.prompt != "two?"}

    forget(history, exchange(history, "two?"), erase=erase)

    assert {each.key: each.exchange for each in history.stored()} == before
    assert (b"two" in said(history)) is not erase


def test_what_was_forgotten_before_is_erased_with_its_session(history: History) -> None:
    """Even where a copy of it, made before its file was rewritten, held nothing else."""
    history.write(talk("one"), at=1)
    history.ingest()
    forget(history, ORIGINAL)
    history.write([*talk("two"), *talk("one")], at=2)
    history.ingest()
    forget(history, ORIGINAL, erase=True)

    assert b"one?" not in said(history)


@pytest.mark.parametrize("erase", [False, True])
def test_new_lines_after_forgotten_ones_are_archived(history: History, erase: bool) -> None:
    """A session that goes on is taken up from there, whether its last exchange or all of it was forgotten."""
    history.write(talk("one", "two"))
    history.ingest()
    forget(history, exchange(history, "two?"), erase=erase)
    history.append(talk("three"))
    history.ingest()

    assert history.prompts() == ["one?", "three?"]

    forget(history, ORIGINAL, erase=erase)
    assert asked(history) == []
    history.append(talk("four"), at=9)
    history.ingest()

    assert asked(history) == ["four?"]
    assert (b"three" in said(history)) is not erase


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_nothing_brings_it_back(history: History, erase: bool, whole: bool) -> None:
    """A rescan, a file that was touched, a copy elsewhere, a fork and a rewritten file leave it forgotten."""
    path = history.write(talk("one", "secret"))
    history.ingest()
    forget(history, ORIGINAL if whole else exchange(history, "secret?"), erase=erase)
    left = [] if whole else ["one?"]
    ways: list[Callable[[], object]] = [
        lambda: None,
        lambda: history.touch(path, 50),
        lambda: history.write(path.read_bytes(), project="elsewhere"),
        lambda: history.write([*talk("one", "secret", session=FORK)], FORK),
        lambda: path.write_bytes(written(talk("before")) + path.read_bytes()),
    ]

    for way in ways:
        way()
        history.ingest()
        assert "secret?" not in asked(history)
        assert (b"secret" in said(history)) <= (not erase)

    assert set(left) <= set(asked(history))


def test_a_whole_session_leaves_no_byte(history: History) -> None:
    """CopyEraser a session removes its copies, also a sealed and a damaged one, and every row that names it."""
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


def test_a_sealed_copy_loses_lines_alone(history: History) -> None:
    """Of a sealed copy the lines go that were erased; the others are read as before."""
    history.write(talk("one", "two"))
    history.ingest()
    CopyCompressor(history.store, history.raw).run()

    forget(history, exchange(history, "one?"), erase=True)

    assert b"one" not in history.copy(history.source())
    assert history.prompts() == ["two?"]
    assert history.copy(history.source()).count(b"\n") == 4


def decided(history: History, target: str) -> Copy:
    """Decide that a target is erased from a sealed copy, and let nobody do it yet."""
    CopyCompressor(history.store, history.raw).run()
    wanted = DeletionRequest(targets=(target,), erase=True)
    Deletions(history.store, history.raw).delete(plan(history, wanted))
    return Copy(history.raw.root, history.source().archived)


def test_a_damaged_copy_keeps_nothing_else_waiting(history: History) -> None:
    """A copy that cannot lose what was erased is reported in each pass, tried again, and holds nobody else up."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = decided(history, exchange(history, "one?"))
    path.unlink()
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.write(talk("new", session=FORK), FORK, at=5)

    for _ in range(2):
        problems = history.ingest().problems
        assert {problem.path for problem in problems} == {copy.compressed_path}
        assert all(problem.hint for problem in problems)
        assert history.store.tombstones.intended() == {copy.archived: False}
    assert asked(history) == ["two?", "new?"]

    copy.compressed_path.write_bytes(whole)
    assert history.ingest().problems == []
    assert b"one?" not in history.copy(history.source())


@pytest.mark.parametrize("begun", [False, True])
def test_who_is_killed_while_a_file_is_copied_leaves_nothing(
    history: History, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """What was erased and comes along with a new or a growing file is gone after the next pass, with the file gone."""
    history.write(talk("one"), at=1)
    path = history.path(FORK)
    if begun:
        history.write(talk("begun", session=FORK), FORK, at=2)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    history.write(talk(*["begun"] * begun, "one", "more", session=FORK), FORK, at=3)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CopyEraser, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            history.ingest()
    assert b"one?" in said(history)
    path.unlink()
    history.ingest()

    assert b"one?" not in said(history)
    assert (b"begun?" in said(history)) is begun
    assert history.store.tombstones.intended() == {}


def test_an_erasure_hides_no_damage_of_other_copies(history: History) -> None:
    """Copies that lost lines on purpose are whole, and never copied anew; one that nothing was erased from is not."""
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
    lacking = Copy(history.raw.root, history.source(FORK).archived).path
    lacking.write_bytes(lacking.read_bytes().replace(b"apart?", b"apert?"))
    assert not inspection.repair(history.source(FORK))
    assert b"one?" not in said(history)


def test_the_last_of_a_copy_is_not_deleted_unasked(history: History) -> None:
    """Where nothing but a damaged form is left, an erasure says so and waits."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = decided(history, exchange(history, "one?"))
    path.unlink()
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")
    history.write(talk("new", session=FORK), FORK, at=5)

    told = {problem.path: problem.reason for problem in history.ingest().problems}
    assert "all that is left" in told[copy.damaged_files()[0]]
    assert len(copy.damaged_files()) == 1
    assert history.store.tombstones.intended() == {copy.archived: False}


@pytest.mark.parametrize("lost", [slice(None, -10), slice(None, -200)])
def test_a_copy_without_its_table_loses_what_was_erased(history: History, lost: slice) -> None:
    """Of a sealed copy whose table is lost the lines go all the same, or the erasure is not over."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = decided(history, exchange(history, "one?"))
    path.unlink()
    history.write(talk("new", session=FORK), FORK, at=5)
    copy.compressed_path.write_bytes(copy.compressed_path.read_bytes()[lost])

    problems = history.ingest().problems

    if history.store.tombstones.intended():
        assert problems
    else:
        assert b"one?" not in said(history)
        assert b"two?" in said(history)
    assert bool(problems) == (lost.stop == -200)


def test_an_erasure_leaves_what_was_forgotten_before(history: History) -> None:
    """An exchange of a file that was rewritten is erased; what stood behind it and was forgotten can be had back."""
    history.write(talk("one"), at=1)
    history.ingest()
    number = forget(history, ORIGINAL)
    history.write(talk("two", "one"), at=2)
    history.ingest()
    forget(history, exchange(history, "two?"), erase=True)
    assert asked(history) == []

    undo(history, number)

    assert asked(history) == ["one?"]
    assert b"two?" not in said(history)


def test_what_was_forgotten_is_erased_by_its_name(history: History) -> None:
    """A session, a project or a text that was forgotten before is known to an erasure, and to nothing else."""
    history.write(talk("one", "canary"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()
    number = forget(history, exchange(history, "canary?"))
    forget(history, OTHER)
    with pytest.raises(InvalidInput, match="Nothing in the archive is called"):
        plan(history, DeletionRequest((OTHER,)))
    assert plan(history, DeletionRequest(mentions="canary")).sources == []

    forget(history, OTHER, erase=True)
    forget(history, mentions="canary", erase=True)

    assert b"other?" not in said(history)
    assert b"canary" not in said(history)
    assert asked(history) == ["one?"]
    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)


def test_each_undoing_brings_back_what_its_forgetting_took(history: History) -> None:
    """A session that is forgotten as a whole takes what was still there: in any order each part comes back."""
    history.write(talk("one", "two"))
    history.ingest()
    first = forget(history, exchange(history, "one?"))
    second = forget(history, ORIGINAL)

    undo(history, first)
    assert asked(history) == ["one?"]
    undo(history, second)
    assert sorted(asked(history)) == ["one?", "two?"]


def test_a_copy_elsewhere_does_not_forget_twice(history: History) -> None:
    """What was forgotten of a session stays to be undone when the time is over for what was forgotten of it later."""
    path = history.write(talk("one", "two"))
    history.ingest()
    history.write(path.read_bytes(), project="elsewhere", at=5)
    history.ingest()
    first = forget(history, exchange(history, "one?"))
    second = forget(history, ORIGINAL)

    Deletions(history.store, history.raw).expire(second)
    history.ingest()
    undo(history, first)

    assert asked(history) == ["one?"]
    assert b"two?" not in said(history)


def test_what_a_session_said_in_another_file_outlives_the_end_of_a_forgetting(history: History) -> None:
    """When the time of a forgetting is over, exchanges of the same session that nobody forgot stay."""
    path = history.write(talk("one", "two"))
    history.ingest()
    forgotten = history.source().archived
    path.write_bytes(written(talk("alpha", "beta")))
    history.touch(path, 60)
    history.ingest()
    number = forget(history, forgotten)
    assert asked(history) == ["alpha?", "beta?"]

    Deletions(history.store, history.raw).expire(number)
    history.ingest()

    assert asked(history) == ["alpha?", "beta?"]
    assert b"one?" not in said(history)


@pytest.mark.parametrize("erase", [False, True])
def test_newer_rules_for_secrets_do_not_bring_it_back(
    tmp_path: Path, newer_rules: Callable[[], None], erase: bool
) -> None:
    """Deletion text stays forgotten when newer rules redact it differently."""
    with History(tmp_path) as history:
        lines = [
            *talk("with CORPKEY-abcdefgh12345678 one"),
            *talk("with CORPKEY-abcdefgh12345678 and ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8 two"),
        ]
        for place, line in enumerate(lines):  # nothing but the line itself tells what it is
            line.pop("uuid")
            line.pop("parentUuid", None)
            line["timestamp"] = f"2026-03-04T10:00:0{place}.000Z"
        path = history.write(lines)
        history.ingest()
        first, second = (ids.show("exchange", each.key) for each in history.stored())
        forget(history, first, erase=erase)
        forget(history, second)
        assert asked(history) == []

        newer_rules()
        history.ingest()
        assert asked(history) == []

        path.write_bytes(written(talk("before")) + path.read_bytes())
        history.ingest()
        assert asked(history) == ["before?"]


def test_what_was_forgotten_can_be_had_back(history: History) -> None:
    """RestoreResult, everything is there as it was, under the same lines."""
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


def test_what_was_erased_cannot_be_had_back(history: History) -> None:
    """Undoing an erasure is refused."""
    history.write(talk("one"))
    history.ingest()
    number = forget(history, ORIGINAL, erase=True)

    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)


def test_what_was_forgotten_long_ago_goes_for_good(history: History) -> None:
    """Thirty days after it was forgotten it is erased, and what can still be had back stays."""
    history.write(talk("one", "two", "three"))
    history.ingest()
    forgetting = Deletions(history.store, history.raw)
    number = forget(history, exchange(history, "one?"))
    later = forget(history, exchange(history, "two?"))
    assert [each.id for each in forgetting.expired(now() + UNDO_PERIOD - 60_000)] == []
    assert {each.id for each in forgetting.expired(now() + UNDO_PERIOD + 60_000)} == {number, later}

    forgetting.expire(number)
    history.ingest()

    assert b"one?" not in said(history)
    assert b"two?" in said(history)
    undo(history, later)
    assert sorted(history.prompts()) == ["three?", "two?"]


def test_the_title_goes_with_the_prompt_it_was_made_from(history: History) -> None:
    """A session that was called after a forgotten prompt is called after what is left."""
    history.write(talk("secret", "two"))
    history.ingest()
    assert history.session().title == "secret?"

    forget(history, exchange(history, "secret?"))

    assert history.session().title == "two?"


def test_everything_that_mentions_something(history: History) -> None:
    """A text names the exchanges in whose lines it stands, in upper or lower case, wherever they are."""
    history.write(talk("one", "Canary"), at=1)
    history.write(talk("other", "xCANARYx", session=OTHER), OTHER, at=2)
    history.ingest()

    forget(history, mentions="canary", erase=True)

    assert sorted(asked(history)) == ["one?", "other?"]
    assert b"canary" not in said(history).lower()


def test_lines_of_a_path_name_their_exchanges(history: History) -> None:
    """A path with lines stands for the exchanges that lie on them."""
    path = history.write(talk("one", "two", "three"))
    history.ingest()

    forget(history, f"{path}:3-4")

    assert history.prompts() == ["one?", "three?"]


def test_a_name_of_nothing_is_refused(history: History) -> None:
    """What names nothing, several sessions or everything is answered with how to name it."""
    history.write(talk("one"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()

    for target in ("ex-999", "mem_1", "obs-1", "nowhere.jsonl", "1111", "../../etc/passwd", "'; DROP TABLE item"):
        with pytest.raises(InvalidInput, match="Nothing in the archive is called"):
            plan(history, DeletionRequest((target,)))
    with pytest.raises(InvalidInput, match="No content was named"):
        plan(history, DeletionRequest())


def test_the_token_is_bound_to_the_set(history: History) -> None:
    """As soon as something is added to what would go, the token is another."""
    history.write(talk("one"))
    history.ingest()
    forgetting = Deletions(history.store, history.raw)
    token = forgetting.token(plan(history, DeletionRequest((ORIGINAL,))))
    assert forgetting.token(plan(history, DeletionRequest((ORIGINAL,)))) == token

    history.append(talk("two"))
    history.ingest()

    assert forgetting.token(plan(history, DeletionRequest((ORIGINAL,)))) != token


def test_what_was_forgotten_is_not_exported(history: History, tmp_path: Path) -> None:
    """A file of which lines were forgotten is not given back, and one that was forgotten is not found."""
    history.write(talk("one", "two"))
    history.ingest()
    forget(history, exchange(history, "one?"))
    originals = Exporter(history.store, history.raw)
    with pytest.raises(SourceUnreadable, match="forgotten"), (tmp_path / "out").open("wb") as out:
        originals.write(history.source(), out)

    forget(history, ORIGINAL)

    with pytest.raises(InvalidInput):
        originals.find(ORIGINAL)


def test_every_line_is_still_accounted_for(history: History) -> None:
    """Deletion lines are counted as such, in copies that were blanked too."""
    history.write(talk("one", "two"))
    history.ingest()
    for prompt, erase in (("one?", False), ("two?", True)):
        forget(history, exchange(history, prompt), erase=erase)
        assert history.store.sources.unaccounted() == []
    assert history.store.sources.all() == [] or history.source().coverage == {"forgotten": 4}
    assert history.store.tombstones.exist()
    assert {each.state for each in history.store.tombstones.all()} == {DeletionState.KEPT, DeletionState.ERASING}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_what_was_not_named_is_untouched(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever is forgotten or erased, every other exchange is what it was, after any number of passes."""
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
            assert known[key].prompt.encode() not in said(history)
