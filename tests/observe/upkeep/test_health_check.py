"""The health check finds problems, suggests remedies, and changes nothing."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.store import ARCHIVER, WATCHER, Store
from palaver.core.config import Config
from palaver.core.conversation import now
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionState, DeletionSummary
from palaver.core.home import Home, upgrade_hint
from palaver.core.reports import HealthReport, Unsearched
from palaver.core.runtime import silent
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.llm.provider import ReplyInvalid
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import health_check
from palaver.observe.upkeep.archive_status import OUTDATED
from palaver.observe.upkeep.health_check import HealthContext, diagnose

from ... import demo
from ...old_version import outdate


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the archived demo."""
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


def no_transcripts(_: Unsearched) -> list[Transcript]:
    return []


def no_budget(_config: Config) -> str:
    return "no budget"


def check(home: Home, transcripts: Callable[[Unsearched], list[Transcript]] = no_transcripts) -> HealthReport:
    return diagnose(HealthContext(home, "1.2.3", transcripts, no_budget))


def contents(home: Home) -> dict[str, bytes | None]:
    """Return the content of every file except SQLite's auxiliary files of an open database."""
    found = (path for path in home.root.rglob("*") if not path.name.endswith(("-wal", "-shm")))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def test_a_healthy_home(home: Home) -> None:
    """The report of a healthy home has one fact per area, in a fixed order, and no problems."""
    before = contents(home)

    found = check(home)

    assert found.problems == []
    assert found.healthy
    assert list(found.facts) == [
        "versions",
        "folder",
        "permissions",
        "database",
        "backups",
        "archive",
        "formats",
        "index",
        "observations",
        "model",
        "last success",
        "watcher",
        "commands",
        "agents",
        "language model",
    ]
    assert "palaver 1.2.3" in found.facts["versions"]
    assert contents(home) == before


def test_a_read_only_home_is_a_problem(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message for a read-only home says that search works but nothing new is archived, and how to change that."""

    def deny(*_: object) -> bool:
        return False

    monkeypatch.setattr(os, "access", deny)

    [found] = check(home).problems

    assert found.problem == f"{home.root} is read-only. Search works, but nothing new is archived"
    assert f"chmod -R u+w {home.root}" in found.remedy


def missing_database(home: Home) -> None:
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def empty_file(home: Home) -> None:
    missing_database(home)
    home.database.touch(0o600)


def copy_without_a_row(home: Home) -> None:
    stray = next(home.archive.rglob("*.jsonl*")).with_name("stray.jsonl")
    stray.touch(0o600)


def stopped_rebuild(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.sources.outdate()


def invalid_database(home: Home) -> None:
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


def unreadable_file(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.sources.report(Path("/somewhere/one.jsonl"), "permission denied")


def missing_lines(home: Home) -> None:
    execute(home, "UPDATE source SET lines = lines + 1")


def unobserved(home: Home) -> None:
    execute(home, "UPDATE exchange SET observed = NULL")


def unfinished_erasure(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.tombstones.schedule_erasure(
            store.tombstones.insert(now(), DeletionState.ERASING, [1], DeletionSummary()),
            {"claude-code/x.jsonl": False},
        )


def overdue_erasure(home: Home) -> None:
    with Store.open(home.database) as store, store.transaction():
        store.tombstones.insert(now() - 2 * UNDO_PERIOD, DeletionState.KEPT, [1], DeletionSummary())


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


FAULTS: dict[Callable[[Home], None], tuple[str, str]] = {
    missing_database: ("database", "fsck --repair"),
    empty_file: ("database", "fsck --repair"),
    copy_without_a_row: ("copies", "rebuild --from-archive"),
    stopped_rebuild: ("copies", "palaver archive"),
    invalid_database: ("database", "fsck --repair"),
    damaged_database: ("database", "fsck --repair"),
    future_schema: ("database", upgrade_hint()),
    damaged_index: ("index", "palaver rebuild"),
    no_index: ("index", "palaver rebuild"),
    readable_by_others: ("permissions", "chmod"),
    wrong_setting: ("settings", "Settings:"),
    missing_model: ("model", ""),
    failed_stage: ("stages", "palaver archive"),
    unreadable_file: ("archive", "palaver archive"),
    missing_lines: ("archive", "fsck --repair"),
    unobserved: ("observations", "palaver archive"),
    unfinished_erasure: ("deletions", "palaver archive"),
    overdue_erasure: ("deletions", "palaver archive"),
    lost_key: ("deletions", "Restore"),
    home_that_is_a_file: ("database", "palaver up"),
    no_home: ("database", "palaver up"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.__name__))
def test_every_fault_is_a_problem(home: Home, fault: Callable[[Home], None]) -> None:
    """Each fault is reported as a problem with a remedy, and all other checks still run."""
    fault(home)
    before = contents(home)

    found = check(home)

    part, remedy = FAULTS[fault]
    assert not found.healthy
    assert any(part == each.part and remedy in each.remedy for each in found.problems), found.problems
    assert all(each.remedy for each in found.problems)
    assert {"versions", "model"} <= {*found.facts, *(each.part for each in found.problems)}
    assert contents(home) == before


def test_copies_of_a_running_ingest_are_no_problem(home: Home) -> None:
    """A copy without a database row is no problem while an ingest runs, because ingest creates copies before rows."""
    copy_without_a_row(home)

    with Store.open(home.database) as store, store.leases.hold(ARCHIVER):
        assert check(home).problems == []


def test_invalid_settings_are_one_problem(home: Home) -> None:
    """Invalid settings are reported once, however many checks read them."""
    wrong_setting(home)

    assert [each.part for each in check(home).problems] == ["settings"]


def test_other_kinds_of_skipped_lines_are_counted(home: Home) -> None:
    """The three most frequent kinds of skipped lines are listed, and the lines of all other kinds are added up."""
    skipped = {"five": 5, "four": 4, "three": 3, "two": 2, "one": 1}
    with Store.open(home.database) as store:
        source = next(each for each in store.sources.all() if each.id is not None)
    execute(home, f"UPDATE source SET coverage = '{json.dumps(skipped)}', lines = 15 WHERE id = {source.id}")
    execute(home, f"UPDATE source SET coverage = '{{}}', lines = 0 WHERE id != {source.id}")

    assert "skipped: 5 five, 4 four, 3 three and 3 of other kinds" in check(home).facts["archive"]


def test_a_full_disk_is_a_problem(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little free space, a network file system and an unsafe SQLite version are problems."""
    monkeypatch.setattr(health_check, "_FREE_SPACE_MIN", 1 << 60)
    monkeypatch.setattr(health_check, "is_network_mount", bool)
    monkeypatch.setattr(health_check, "is_wal_safe", bool)

    assert [each.part for each in check(home).problems] == ["versions", "folder", "folder"]


def test_an_older_schema_is_not_converted(home: Home) -> None:
    """A health check names the command that converts the database of an earlier version, and changes nothing."""
    execute(home, "PRAGMA user_version = 1")
    before = contents(home)

    found = check(home)

    assert [(each.part, each.remedy.partition(" to ")[0]) for each in found.problems] == [
        ("database", "Run `palaver migrate`")
    ]
    assert contents(home) == before


def test_an_index_of_another_version_is_no_problem(home: Home) -> None:
    """After an upgrade, the outdated index is a fact with the command that rebuilds it, and not a problem."""
    outdate(home.index)

    found = check(home)

    assert found.facts["index"] == OUTDATED
    assert "`palaver archive`" in OUTDATED
    assert found.problems == []


def test_files_that_are_not_archived_are_a_problem(home: Home, pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transcripts that are not archived are a problem, unless they changed only moments ago."""
    projects = shutil.copytree(pristine / "projects", home.root.parent / "projects")

    def transcripts(_: Unsearched) -> list[Transcript]:
        return [replace(each, format=each.recognise()) for each in in_paths([projects])]

    found = check(home, transcripts)
    assert [(each.part, each.problem.partition(" claude-code files ")[2]) for each in found.problems] == [
        ("watcher", ""),
        ("agents", "are not archived yet"),
    ]

    for path in projects.rglob("*.jsonl"):
        os.utime(path)
    [unwatched] = check(home, transcripts).problems
    assert unwatched.part == "watcher"
    assert unwatched.remedy == "Run `palaver install service`."
    monkeypatch.setattr(health_check, "_SETTLED", -60.0)
    assert [each.part for each in check(home, transcripts).problems] == ["watcher", "agents"]


def test_a_container_that_is_not_archived_is_a_problem(home: Home, tmp_path: Path) -> None:
    """Containers are checked like files. One that only its write-ahead log shows to be in use is not late."""
    task = tmp_path / "globalStorage" / "saoudrizwan.claude-dev" / "tasks" / "1772359200000"
    task.mkdir(parents=True)
    path, log = task / "ui_messages.json", task / "ui_messages.json-wal"
    rows = [{"ts": 1772359200000, "type": "say", "say": "task", "text": "Fix the login"}]
    path.write_text(json.dumps(rows), encoding="utf-8")
    os.utime(path, (1772359200, 1772359200))
    transcripts = in_paths([tmp_path / "globalStorage"])

    def of_agents() -> list[str]:
        return [each.problem for each in check(home, lambda _: transcripts).problems if each.part == "agents"]

    assert check(home, lambda _: transcripts).facts["agents"] == "1 cline file"
    assert of_agents() == ["1 of 1 cline file is not archived yet"]
    log.touch()
    assert of_agents() == []
    log.unlink()
    with Pipeline(home) as pipeline:
        pipeline.run(transcripts)
    assert of_agents() == []
    path.write_text(json.dumps(rows * 2), encoding="utf-8")
    os.utime(path, (1772359300, 1772359300))
    assert of_agents() == ["1 of 1 cline file is not completely archived"]


def test_copies_that_wait_are_a_problem(home: Home) -> None:
    """Copies that wait to be parsed again are a problem."""
    with Store.open(home.database) as store, store.transaction():
        each = next(iter(store.sources.all()))
        store.sources.outdate([each.id or 0])

    [problem] = [each.problem for each in check(home).problems if "waits" in each.problem]
    assert re.fullmatch(r"1 of \d+ cop(y|ies) waits to be parsed again", problem)


def test_a_damaged_copy_does_not_wait(home: Home) -> None:
    """A damaged copy is reported once, with the repair command, and does not count as waiting."""
    with Store.open(home.database) as store:
        gone = next(iter(store.sources.all()))
        RawArchive(home.archive).resolve(gone.archived).unlink()
        with store.transaction():
            store.sources.outdate([gone.id or 0])
    with Pipeline(home) as pipeline:
        [problem] = pipeline.run(()).ingested.problems

    reported = [each for each in check(home).problems if each.part == "copies"]
    assert [(each.problem, "fsck --repair" in each.remedy) for each in reported] == [(str(problem), True)]
    assert str(problem) == f"{home.archive / gone.archived}: the raw copy is missing from the archive"


@pytest.mark.parametrize("ingested", [False, True])
def test_an_erased_file_is_no_problem(
    home: Home, pristine: Path, monkeypatch: pytest.MonkeyPatch, *, ingested: bool
) -> None:
    """The agent's file of an erased session is counted as erased, unless it grew."""
    monkeypatch.setattr(health_check, "_SETTLED", -60.0)
    path = next(iter(sorted((pristine / "projects").rglob("*.jsonl"))))
    transcripts = [replace(each, format=each.recognise()) for each in in_paths([path])]
    with Deleter(home) as deleter:
        wanted = DeletionRequest((str(path),), erase=True)
        deleter.delete(wanted, deleter.preview(wanted).token)
    if ingested:
        with Pipeline(home) as pipeline:
            pipeline.run(transcripts)

    found = check(home, lambda _: transcripts)
    assert found.facts["agents"] == "1 claude-code file, 1 of them erased from the archive"
    assert [each.part for each in found.problems] == ["watcher"]

    before = path.read_bytes()
    path.write_bytes(before + b'{"type": "user", "timestamp": "2026-01-01T00:00:00Z"}\n')
    try:
        assert [each.part for each in check(home, lambda _: transcripts).problems] == ["watcher", "agents"]
    finally:
        path.write_bytes(before)


def test_a_running_watcher(home: Home) -> None:
    """Pending work of a running background archiver is not a problem."""
    unobserved(home)
    stopped_rebuild(home)
    with Store.open(home.database) as store, store.leases.hold(WATCHER):
        found = check(home)

    assert found.facts["watcher"].startswith("running since")
    assert found.healthy


@pytest.mark.parametrize(
    ("exchanges", "vectors", "fact", "problem"),
    [
        (0, 0, "", ""),
        (0, 445, "445 entries not embedded yet (`palaver archive` continues)", ""),
        (2, 0, "2 exchanges not observed yet", "2 exchanges not observed yet"),
        (0, 1, "1 entry not embedded yet (`palaver archive` continues)", ""),
        (
            1,
            1,
            "1 exchange not observed yet; 1 entry not embedded yet (`palaver archive` continues)",
            "1 exchange not observed yet",
        ),
    ],
)
def test_only_work_that_waits_is_named(home: Home, exchanges: int, vectors: int, fact: str, problem: str) -> None:
    """Waiting exchanges are a problem. Entries that are not embedded yet are a fact, because search finds them."""
    context = HealthContext(home, "1.2.3", no_transcripts, no_budget)
    status = replace(context.status, unobserved=exchanges, unembedded=vectors)
    context.__dict__["status"] = status  # pyright: ignore[reportIndexIssue] - replaces the cached property

    found = diagnose(context)

    assert found.facts["observations"].partition("; ")[2] == fact
    assert [each.problem for each in found.problems] == ([problem] if problem else [])


def test_a_deep_check_verifies_every_copy(home: Home) -> None:
    """`--deep` finds a flipped byte that no other check sees, and writes nothing."""
    copy = next(home.archive.rglob("*.jsonl*"))
    data = bytearray(copy.read_bytes())
    data[100] ^= 1
    copy.write_bytes(data)
    assert check(home).healthy

    found = diagnose(HealthContext(home, "1.2.3", no_transcripts, no_budget), silent)

    assert found.facts["checksums"].startswith("verified: ")
    [problem] = found.problems
    assert problem.part == "copies"
    assert str(home.archive) in problem.problem
    assert "fsck --repair" in problem.remedy
    assert check(home).healthy


def test_a_deep_check_of_a_healthy_home_finds_nothing(home: Home) -> None:
    """A deep check reports the number of verified items."""
    found = diagnose(HealthContext(home, "1.2.3", no_transcripts, no_budget), silent)

    assert found.healthy
    assert re.fullmatch(
        r"verified: sources [\d,]+, copies [\d,]+, entries [\d,]+, vectors [\d,]+, backups 1", found.facts["checksums"]
    )


@pytest.mark.parametrize("fault", [missing_database, damaged_database, no_home])
def test_a_deep_check_works_on_a_broken_home(home: Home, fault: Callable[[Home], None]) -> None:
    """A deep check of a broken home reports each problem once."""
    fault(home)

    found = diagnose(HealthContext(home, "1.2.3", no_transcripts, no_budget), silent)

    assert found.problems
    assert len({(each.part, each.problem) for each in found.problems}) == len(found.problems)
