"""Does the doctor see what is wrong, name the command that helps, and touch nothing?"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.deletion.deletions import UNDO_PERIOD
from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.store import ARCHIVER, WATCHER, State, Store
from palaver.core.checkup import Diagnosis
from palaver.core.clock import now
from palaver.core.config import Config
from palaver.core.deletion import DeletionRequest, DeletionSummary
from palaver.core.home import Home
from palaver.core.installation import upgrade_hint
from palaver.core.report import Unsearched
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.llm.model_errors import ReplyInvalid
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import holdings, surroundings
from palaver.observe.upkeep.doctor import diagnose
from palaver.observe.upkeep.patient import Patient
from palaver.observe.upkeep.status import OUTDATED

from ... import demo
from ...upgrade import outdate


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo, archived."""
    before = os.umask(0o077)
    root = tmp_path_factory.mktemp("doctor")
    demo.archived(root)
    yield root
    os.umask(before)
    shutil.rmtree(root)


@pytest.fixture
def home(pristine: Path, tmp_path: Path) -> Home:
    shutil.copytree(pristine / "palaver", tmp_path / "palaver")
    return Home(tmp_path / "palaver")


def nothing(_: Unsearched) -> list[Transcript]:
    return []


def off(_config: Config) -> str:
    return "no budget"


def looked_at(home: Home, transcripts: Callable[[Unsearched], list[Transcript]] = nothing) -> Diagnosis:
    return diagnose(Patient(home, "1.2.3", transcripts, off))


def contents(home: Home) -> dict[str, bytes | None]:
    """Every file; but for what SQLite keeps beside a database that is open."""
    found = (path for path in home.root.rglob("*") if not path.name.endswith(("-wal", "-shm")))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def test_a_healthy_home(home: Home) -> None:
    """Of a home where all is well every part is told, in their order, and nothing is to be done."""
    before = contents(home)

    found = looked_at(home)

    assert found.findings == []
    assert found.healthy
    assert list(found.facts) == [
        "versions",
        "folder",
        "rights",
        "database",
        "backups",
        "archive",
        "index",
        "learned",
        "model",
        "last success",
        "watcher",
        "agents",
        "language",
    ]
    assert "palaver 1.2.3" in found.facts["versions"]
    assert contents(home) == before


def test_a_home_that_may_only_be_read_is_told_of(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wonders why nothing new is found hears it, and everything else is looked at all the same."""

    def may_not(*_: object) -> bool:
        return False

    monkeypatch.setattr(os, "access", may_not)

    [found] = looked_at(home).findings

    assert found.problem == f"{home.root} may only be read: it is searched, and nothing new is archived"
    assert f"chmod -R u+w {home.root}" in found.remedy


def missing_database(home: Home) -> None:
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def database_of_no_bytes(home: Home) -> None:
    missing_database(home)
    home.database.touch(0o600)


def copy_without_a_row(home: Home) -> None:
    stray = next(home.archive.rglob("*.jsonl*")).with_name("stray.jsonl")
    stray.touch(0o600)


def stopped_rebuild(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.sources.outdate()


def empty_database(home: Home) -> None:
    home.database.write_bytes(b"not a database, for certain" * 300)


def damaged_database(home: Home) -> None:
    with home.database.open("r+b") as file:
        file.seek(5_000)
        file.write(b"\xde\xad\xbe\xef" * 5_000)


def execute(home: Home, statement: str) -> None:
    connection = apsw.Connection(str(home.database))
    connection.execute(statement).fetchall()
    connection.close()


def future_schema(home: Home) -> None:
    execute(home, "PRAGMA user_version = 9999")


def damaged_index(home: Home) -> None:
    for path in home.index.rglob("*.npy"):
        path.write_bytes(b"")


def no_index(home: Home) -> None:
    shutil.rmtree(home.index)


def readable_by_others(home: Home) -> None:
    home.database.chmod(0o644)


def wrong_setting(home: Home) -> None:
    home.config.write_text("modle = 1\n")
    home.config.chmod(0o600)


def missing_model(home: Home) -> None:
    home.config.write_text('model = "/no/such/folder"\n')
    home.config.chmod(0o600)


def failed_stage(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.stages.note("publish", [ReplyInvalid("no room", "")])


def unread_file(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.sources.report(Path("/somewhere/one.jsonl"), "permission denied")


def unaccounted(home: Home) -> None:
    execute(home, "UPDATE source SET lines = lines + 1")


def unobserved(home: Home) -> None:
    execute(home, "UPDATE exchange SET observed = NULL")


def unfinished_erasure(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.tombstones.intend(
            store.tombstones.begin(now(), State.ERASING, [1], DeletionSummary()), {"claude-code/x.jsonl": False}
        )


def overdue_erasure(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.tombstones.begin(now() - 2 * UNDO_PERIOD, State.KEPT, [1], DeletionSummary())


def lost_key(home: Home) -> None:
    with Deleter(home) as deleter:
        wanted = DeletionRequest(mentions="tide")
        deleter.delete(wanted, deleter.preview(wanted).token)
    home.key_file.unlink()


def home_that_is_a_file(home: Home) -> None:
    shutil.rmtree(home.root)
    home.root.write_text("mine")


def no_home(home: Home) -> None:
    shutil.rmtree(home.root)


WRONG: dict[Callable[[Home], None], tuple[str, str]] = {
    missing_database: ("database", "rebuild --from-archive"),
    database_of_no_bytes: ("database", "rebuild --from-archive"),
    copy_without_a_row: ("copies", "rebuild --from-archive"),
    stopped_rebuild: ("copies", "palaver archive"),
    empty_database: ("database", "fsck --repair"),
    damaged_database: ("database", "fsck --repair"),
    future_schema: ("database", upgrade_hint()),
    damaged_index: ("index", "palaver rebuild"),
    no_index: ("index", "palaver rebuild"),
    readable_by_others: ("rights", "chmod"),
    wrong_setting: ("settings", "Settings:"),
    missing_model: ("model", ""),
    failed_stage: ("stages", "palaver archive"),
    unread_file: ("archive", "palaver archive"),
    unaccounted: ("archive", "fsck --repair"),
    unobserved: ("learned", "palaver archive"),
    unfinished_erasure: ("forgotten", "palaver archive"),
    overdue_erasure: ("forgotten", "palaver archive"),
    lost_key: ("forgotten", "Restore"),
    home_that_is_a_file: ("database", "palaver up"),
    no_home: ("database", "palaver up"),
}


@pytest.mark.parametrize("fault", WRONG, ids=lambda fault: str(fault.__name__))
def test_what_is_wrong_is_told(home: Home, fault: Callable[[Home], None]) -> None:
    """Each fault is a finding with the one thing to do; every other part is looked at all the same."""
    fault(home)
    before = contents(home)

    found = looked_at(home)

    part, remedy = WRONG[fault]
    assert not found.healthy
    assert any(part == each.part and remedy in each.remedy for each in found.findings), found.findings
    assert all(each.remedy for each in found.findings)
    assert {"versions", "model"} <= {*found.facts, *(each.part for each in found.findings)}
    assert contents(home) == before


def test_copies_that_are_being_made_are_no_finding(home: Home) -> None:
    """Who takes transcripts up makes a copy first and its row then: until the end nobody says that one is missing."""
    copy_without_a_row(home)

    with Store.open(home.database) as store, store.leases.hold(ARCHIVER):
        assert looked_at(home).findings == []


def test_wrong_settings_are_one_finding(home: Home) -> None:
    """However many parts would heed them, settings that cannot be read are told once."""
    wrong_setting(home)

    assert [each.part for each in looked_at(home).findings] == ["settings"]


def test_kinds_of_skipped_lines_that_are_not_named_are_counted(home: Home) -> None:
    """Three kinds are named, and the lines of all others are counted."""
    skipped = {"five": 5, "four": 4, "three": 3, "two": 2, "one": 1}
    with Store.open(home.database) as store:
        source = next(each for each in store.sources.all() if each.id is not None)
    execute(home, f"UPDATE source SET coverage = '{json.dumps(skipped)}', lines = 15 WHERE id = {source.id}")
    execute(home, f"UPDATE source SET coverage = '{{}}', lines = 0 WHERE id != {source.id}")

    assert "skipped: 5 five, 4 four, 3 three and 3 of other kinds" in looked_at(home).facts["archive"]


def test_a_full_disk_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room, a network file system and an unsafe SQLite are told before they cost anything."""
    monkeypatch.setattr(surroundings, "_LITTLE", 1 << 60)
    monkeypatch.setattr(surroundings, "is_silent", bool)
    monkeypatch.setattr(surroundings, "is_wal_safe", bool)

    assert [each.part for each in looked_at(home).findings] == ["versions", "folder", "folder"]


def test_an_older_schema_is_left_as_it_is(home: Home) -> None:
    """A database of an earlier version is not brought up to date by looking at it."""
    execute(home, "PRAGMA user_version = 1")
    before = contents(home)

    found = looked_at(home)

    assert "schema 1 of" in found.facts["database"]
    assert found.healthy
    assert contents(home) == before


def test_an_index_of_another_version_is_no_fault(home: Home) -> None:
    """After an upgrade it is told what is searched meanwhile, and what makes the index anew; nothing is damaged."""
    outdate(home.index)

    found = looked_at(home)

    assert found.facts["index"] == OUTDATED
    assert "`palaver archive`" in OUTDATED
    assert found.findings == []


def test_agents_that_are_not_archived(home: Home, pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that changed a while ago and are not archived count; what was written just now does not."""
    projects = shutil.copytree(pristine / "projects", home.root.parent / "projects")

    def transcripts(_: Unsearched) -> list[Transcript]:
        return [replace(each, format=each.recognise()) for each in in_paths([projects])]

    found = looked_at(home, transcripts)
    assert [(each.part, each.problem.partition(" of claude-code ")[2]) for each in found.findings] == [
        ("agents", "are not archived yet")
    ]

    for path in projects.rglob("*.jsonl"):
        os.utime(path)
    assert looked_at(home, transcripts).healthy
    monkeypatch.setattr(holdings, "_SETTLED", -60.0)
    assert not looked_at(home, transcripts).healthy


def test_why_copies_wait_is_not_guessed(home: Home) -> None:
    """A rebuild that was stopped leaves what an update or an undoing leaves: copies to be read again."""
    with Store.open(home.database) as store, store.transaction():
        each = next(iter(store.sources.all()))
        store.tombstones.reread([each.id or 0])

    [told] = [each.problem for each in looked_at(home).findings if "waits" in each.problem]
    assert re.fullmatch(r"1 of \d+ cop(y|ies) waits to be read again", told)


def test_a_damaged_copy_does_not_wait_to_be_read(home: Home) -> None:
    """What no pass can read is told with what mends it, and once; the pass that met it says where it stands."""
    with Store.open(home.database) as store:
        gone = next(iter(store.sources.all()))
        RawArchive(home.archive).resolve(gone.archived).unlink()
        with store.transaction():
            store.tombstones.reread([gone.id or 0])
    with Pipeline(home) as pipeline:
        [problem] = pipeline.run(()).ingested.problems

    told = [each for each in looked_at(home).findings if each.part == "copies"]
    assert [(each.problem, "fsck --repair" in each.remedy) for each in told] == [(str(problem), True)]
    assert str(problem) == f"{home.archive / gone.archived}: the copy is gone from the archive"


@pytest.mark.parametrize("passed", [False, True])
def test_a_file_that_was_erased_is_no_finding(
    home: Home, pristine: Path, monkeypatch: pytest.MonkeyPatch, *, passed: bool
) -> None:
    """The agent's file of an erased session is counted as such, before a pass and after; one that grew is not."""
    monkeypatch.setattr(holdings, "_SETTLED", -60.0)
    path = next(iter(sorted((pristine / "projects").rglob("*.jsonl"))))
    told = [replace(each, format=each.recognise()) for each in in_paths([path])]
    with Deleter(home) as deleter:
        wanted = DeletionRequest((str(path),), erase=True)
        deleter.delete(wanted, deleter.preview(wanted).token)
    if passed:
        with Pipeline(home) as pipeline:
            pipeline.run(told)

    found = looked_at(home, lambda _: told)
    assert found.facts["agents"] == "claude-code 1 file, 1 of which was erased"
    assert found.healthy

    before = path.read_bytes()
    path.write_bytes(before + b'{"type": "user", "timestamp": "2026-01-01T00:00:00Z"}\n')
    try:
        assert [each.part for each in looked_at(home, lambda _: told).findings] == ["agents"]
    finally:
        path.write_bytes(before)


def test_a_watcher_that_runs(home: Home) -> None:
    """What the background archiver will do by itself is not asked of a person."""
    unobserved(home)
    stopped_rebuild(home)
    with Store.open(home.database) as store, store.leases.hold(WATCHER):
        found = looked_at(home)

    assert found.facts["watcher"].startswith("runs since")
    assert found.healthy


@pytest.mark.parametrize(
    ("exchanges", "vectors", "told"),
    [
        (0, 0, ""),
        (0, 445, "445 vectors wait"),
        (2, 0, "2 exchanges wait"),
        (0, 1, "1 vector waits"),
        (1, 1, "1 exchange and 1 vector wait"),
    ],
)
def test_nothing_is_told_of_what_is_not_there(home: Home, exchanges: int, vectors: int, told: str) -> None:
    """What waits is named by those of the two that wait, and not as none of the other."""
    patient = Patient(home, "1.2.3", nothing, off)
    assert patient.status is not None
    status = replace(patient.status, unobserved=exchanges, unembedded=vectors)
    patient.__dict__["status"] = status  # pyright: ignore[reportIndexIssue] - a cached property keeps it there

    found = diagnose(patient)

    assert found.facts["learned"].partition("; ")[2] == told
    assert [each.problem.partition(" for the next pass")[0] for each in found.findings] == ([told] if told else [])
