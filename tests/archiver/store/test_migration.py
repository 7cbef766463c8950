"""A database of any earlier schema is converted with all of its content, or stays in use unchanged."""

# pyright: reportPrivateUsage=false

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from palaver.archiver.store import Store, migration
from palaver.archiver.store.database import Database, connect, latest_version, schema_sql
from palaver.archiver.store.migration import Migration, delete_old_databases, is_outdated, migrate, old_steps
from palaver.core.conversation import Kind, Origin
from palaver.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreOutdated, StoreReadOnly
from palaver.core.home import Home
from palaver.core.memory import SESSION_LIFETIME

from ... import crash_injection
from ...old_version import fill, old_database, rows

LAST = len(old_steps())
KILLS = int(os.environ.get("MIGRATION_KILLS", "4"))
"""Number of steps at which a conversion is killed. `make kill` kills it at more steps."""
WORKER = "tests.archiver.store.migration_worker"

ROWS = """
INSERT INTO session VALUES (1, 'test', 'one', 'main', '', 'shop', '/shop', 'main', 'A title', 1, '1', '[]', '{}', 1, 2);
INSERT INTO source (id, agent, session, path, archived, device, inode, mtime, size, head, tail, lines, coverage)
    VALUES (1, 'test', 1, CAST('/one.jsonl' AS BLOB), 'test/one.jsonl', 0, 0, 0, 0, x'', x'', 2, '{"parsed": 2}');
INSERT INTO record VALUES ('r1', 1, 1);
INSERT INTO item (key, kind, session, at) VALUES (1, 'exchange', 1, 5), (2, 'observation', 1, 6);
INSERT INTO exchange VALUES (1, 1, 0, 1, 2, 0, 9, '/shop', 'main', 6, 0, 0, CAST(
    '[[1, "human", "prompt", "brass kettle", 5, "r1", "", "", "", false, [], ["/shop/kettle.py"], true]]'
    AS BLOB), NULL);
INSERT INTO observation VALUES (2, 1, 'decision', 'Brass it is', '', '', '[]', '[]', '[]', '[]', '[[1, 1, "brass"]]',
    'direct_user', 'test-1', 10);
INSERT INTO vector VALUES (1, 0, 'fake/1', x'003c0000');
INSERT INTO change (entity, id) VALUES ('item', 1), ('item', 2), ('vector', 1);
"""
"""One row for every table of the first schema."""


def before(text: str) -> int:
    """Return the number of the last old version before the step that contains a text."""
    return next(step for step, statements in enumerate(old_steps()) if text in statements)


def home_of(path: Path, version: int, *statements: str) -> Home:
    """Return a home with an old database that contains the rows `ROWS`."""
    old_database(path, version, ROWS)
    with closing(apsw.Connection(str(path))) as connection:
        for sql in statements:
            connection.execute(sql)
    return Home(path.parent)


def schema(path: Path) -> set[str]:
    with closing(apsw.Connection(str(path))) as connection:
        return set(map(str, connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")))


def test_every_old_version_is_converted(tmp_path: Path) -> None:
    """Content of an earlier version is unchanged, and the schema equals that of a new database."""
    Store.create(tmp_path / "palaver.db").close()
    for version in range(1, LAST + 1):
        (tmp_path / str(version)).mkdir()
        path = old_database(tmp_path / str(version) / "palaver.db", version, ROWS)
        assert migrate(Home(path.parent)).converted
        with Store.open(path) as store:
            stored = store.exchanges.load([1])[1]
            assert [(turn.kind, turn.text) for turn in stored.exchange.turns] == [(Kind.PROMPT, "brass kettle")]
            assert [each.observation.title for each in store.observations.of_exchange(1)] == ["Brass it is"]
            assert [each.data for each in store.vectors.all("fake/1")] == [b"\x00\x3c\x00\x00"]
            assert store.sessions.load(1).title == "A title"
            assert store.sources.locate(["r1"]) == {"r1": (1, 1)}
            assert [edit.path for edit in store.edits.newest(None)] == ["/shop/kettle.py"]
            assert (store.changes.last(), store.schema) == (3, (latest_version(), latest_version())), version
            integrity = store.integrity
            assert not integrity.damage()
            assert not integrity.dangling()
            assert not (
                integrity.unreadable_sources()
                | integrity.outside_source()
                | {*integrity.without_evidence(), *integrity.without_content()}
            )
            assert store._database.one("PRAGMA checksum_verification") == ("1",)
        assert schema(path) == schema(tmp_path / "palaver.db")


def test_no_value_of_any_table_is_lost(path: Path) -> None:
    """Every row of an old database is a row of the new one, and the next IDs are the same."""
    fill(old_database(path, LAST))
    old, sequences = rows(path), dict(rows(path)["sqlite_sequence"])
    for name in ("sqlite_sequence", "renounced", "renunciation"):  # The latter two have had no effect for long.
        del old[name]
    migrate(Home(path.parent))
    new = [set(map(str, row)) for found in rows(path).values() for row in found]

    for name, found in old.items():
        for row in found:
            values = {
                str(value)
                for number, value in enumerate(row)
                if not (name == "forgotten_item" and number == 6)  # packed rows
                and not (name == "source" and number in {18, 20})  # `masked` and `compared`, which nothing reads
            }
            assert any(values <= other for other in new), (name, row)
    [[*_, packed], _] = rows(path)["deleted_exchange"]
    assert [*msgspec.msgpack.decode(packed)] == ["edited_file"]
    counts = {name: len(found) for name, found in rows(path).items() if name != "sqlite_sequence"}
    assert set(counts.values()) == {2}
    renamed = {old: new for new, old in migration._TABLES.items()}
    now = dict(rows(path)["sqlite_sequence"])
    assert now == {renamed.get(name, name): last for name, last in sequences.items()}
    assert delete_old_databases(Home(path.parent)).deleted == 1


def test_the_old_database_is_kept_until_it_is_deleted(path: Path) -> None:
    """It has the old schema and content. A second call converts nothing, and a command deletes it."""
    home = home_of(path, 40)
    content = rows(path)
    done = migrate(home)
    [old] = done.old

    assert (done.converted, done.rows["exchange"]) == (True, 1)
    assert rows(old) == content
    assert migrate(home) == Migration(home.root, old=(old,))
    assert delete_old_databases(home) == Migration(home.root, deleted=1)
    assert migrate(home) == Migration(home.root)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("old"))
    fill(old_database(home.database, LAST))
    with closing(apsw.Connection(str(home.database))) as connection:
        connection.execute("DROP TABLE subagent_call; PRAGMA user_version = 50")
        connection.execute("UPDATE source SET coverage = '{}'")
    return home


@pytest.fixture(scope="module")
def converted(pristine: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    home = Home(shutil.copytree(pristine.root, tmp_path_factory.mktemp("calm") / "home"))
    migrate(home)
    return rows(home.database)


def test_a_killed_conversion_loses_nothing(
    pristine: Home, converted: dict[str, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    """After a kill at any step, the old database is in use unchanged, or the new one is. The next call completes it."""
    home = Home(tmp_path / "home")
    content = rows(pristine.database)

    def begin(at: int) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(home.root, ignore_errors=True)
        shutil.copytree(pristine.root, home.root)
        return crash_injection.run(WORKER, home.root, at)

    steps = crash_injection.steps(begin(0))
    states = set[bool]()
    for number in range(KILLS):
        crash_injection.kill(begin, steps - 1 - steps * number // KILLS)
        outdated = is_outdated(home.database)
        states.add(outdated)
        if outdated:
            with pytest.raises(StoreOutdated):
                Store.open(home.database)
            assert rows(home.database) == content, number
        assert migrate(home).converted == outdated
        assert rows(home.database) == converted, number
        assert {path.name for path in home.root.iterdir()} <= {
            "palaver.db",
            "palaver.db-shm",
            "palaver.db-wal",
            "backups",
        }
        assert rows(migration.old_databases(home)[-1]) == content
    assert states == {True, False}


def test_a_full_disk_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported with the space that is needed, and the next call converts."""
    files = "WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO problem"
    home = home_of(path, 40, f"{files} SELECT CAST('/' || i AS BLOB), printf('%.200c', 'x'), i FROM n")
    content, sql = rows(path), schema_sql(0)
    limited = f"{sql} PRAGMA max_page_count = 130;"

    def schema_of_a_small_disk(*_versions: int) -> str:
        return limited

    monkeypatch.setattr("palaver.archiver.store.migration.schema_sql", schema_of_a_small_disk)
    with pytest.raises(StoreError, match="the disk is full") as full:
        migrate(home)

    assert "MB, then run `palaver migrate` again" in full.value.hint
    assert rows(path) == content
    assert not [file for file in home.root.iterdir() if file.name.startswith("palaver.db.new")]
    monkeypatch.undo()
    assert migrate(home).rows["problem"] == 3_000


def test_a_different_copy_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the new database differs from the rows that were read, the old one stays in use."""
    home = home_of(path, LAST)
    real = migration._copy

    def copy_wrongly(old: apsw.Connection, new: apsw.Connection, *others: Any) -> None:
        real(old, new, *others)
        new.execute("UPDATE observation SET title = 'Tin it is'")

    monkeypatch.setattr(migration, "_copy", copy_wrongly)
    with pytest.raises(StoreCorrupt, match="observation of the new database differs"):
        migrate(home)

    assert is_outdated(path)
    assert not home.backups.exists()


WATCHER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("SELECT count(*) FROM change").fetchall()
print("open", flush=True)
sys.stdin.read()
"""


def test_a_running_watcher_is_named(path: Path) -> None:
    """While another process has the database open, nothing is converted. Afterwards it is."""
    home = home_of(path, LAST)
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        with pytest.raises(StoreBusy, match="in use by another process") as busy:
            migrate(home)
        assert "Stop `palaver watch`" in busy.value.hint
        watcher.communicate()

    assert migrate(home).converted


def test_a_process_that_waited_opens_the_new_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that opened the file before it was replaced opens the new file, and writes nothing to the old one."""
    home = home_of(path, LAST)
    left = [migrate]

    def opened_too_early(name: str, flags: int) -> apsw.Connection:
        connection = connect(name, flags)
        if left and name == str(path):
            monkeypatch.undo()
            left.pop()(home)
        return connection

    monkeypatch.setattr("palaver.archiver.store.database.connect", opened_too_early)
    with closing(Database.open(path)) as database:
        assert database.schema == (latest_version(), latest_version())
    assert not left


def test_a_read_only_home_is_refused(path: Path) -> None:
    """A home that cannot be written stays as it is. Only a converted one needs no conversion."""
    home_of(path, LAST)
    for call in (migrate, delete_old_databases):
        with pytest.raises(StoreReadOnly):
            call(Home(path.parent, read_only=True))
    assert is_outdated(path)


def test_a_damaged_database_is_not_converted(path: Path) -> None:
    """It stays in use, and the message names the command that repairs it."""
    home = home_of(path, LAST)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
        root = int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'observation'").get)
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreCorrupt) as damaged:
        migrate(home)

    assert "palaver fsck --repair" in damaged.value.hint
    assert [file.name for file in path.parent.iterdir()] == ["palaver.db"]


def test_vectors_without_tokens_are_kept_until_they_are_replaced(path: Path) -> None:
    """Vectors of the packaged model without token embeddings remain searchable and are computed again."""
    migrate(
        home_of(
            path,
            before("CREATE TABLE token"),
            "UPDATE vector SET model = 'all-MiniLM-L6-v2-int8/1'",
            "UPDATE item SET embedded = 'all-MiniLM-L6-v2-int8/1'",
        )
    )

    with Store.open(path) as store:
        model = "all-MiniLM-L6-v2-int8/2"
        assert [(each.item, each.data, each.token_bits) for each in store.vectors.all(model)] == [
            (1, b"\0\x3c\0\0", b"")
        ]
        assert store.vectors.unembedded(model, 9) == [2, 1]


def memory(key: int, **values: object) -> str:
    """Return the statement that inserts a memory into an old database, with default values for other columns."""
    columns: dict[str, object] = {
        "item": key,
        "content": str(key),
        "type": "preference",
        "namespace": "global",
        "importance": 0.5,
        "tags": "[]",
        "metadata": "{}",
        "origin": "assistant",
        "family": "preference",
        "hash": str(key),
        "confidence": 0.9,
        "state": "active",
        "created": 5,
        "updated": 5,
        **dict.fromkeys(("title", "project", "level", "source", "session_id", "path", "promoted_from"), ""),
        **dict.fromkeys(("pinned", "successes", "failures", "strikes"), 0),
        **values,
    }
    return f"""INSERT INTO item (key, kind, at) VALUES ({key}, 'memory', 5);
        INSERT INTO memory ({", ".join(columns)}) VALUES ({", ".join(map(repr, columns.values()))});"""


def test_golden_rules_of_agents_wait_for_approval_after_an_upgrade(path: Path) -> None:
    """Golden rules of agents return to their former type and keep their confidence. The user's golden rules stay."""
    golden = {"type": "golden_rule", "promoted_from": "preference"}
    migrate(
        home_of(
            path,
            before("origin != 'human'"),
            memory(10, **golden),
            memory(11, **golden, origin="human"),
            memory(12, type="session", family="session"),
        )
    )

    with Store.open(path) as store:
        held = store.memories.load([10, 11, 12])
        assert [held[key].memory.type for key in held] == ["preference", "golden_rule", "session"]
        assert (held[10].stats.confidence, held[10].stats.promoted_from) == (0.9, "")
        assert [held[key].memory.valid_until for key in held] == [None, None, 5 + SESSION_LIFETIME]
        assert 10 in store.changes.since(0)


def test_preferences_move_to_the_project_that_shows_them(path: Path) -> None:
    """A number that is reserved for no project is removed from approved preferences, and from nothing else."""
    kept = [
        ("project:shop-2", "shop", "user"),
        ("project:cli-7", "cli", "conversation"),
        ("project:v-2x", "v", "conversation"),
    ]
    migrate(
        home_of(
            path,
            before("under a number"),
            "INSERT INTO project VALUES ('/a/cli', 'project:cli-7', 'project:cli')",
            memory(10, namespace="project:cli-2", project="cli", source="conversation"),
            *(
                memory(number, namespace=space, project=name, source=source)
                for number, (space, name, source) in enumerate(kept, 11)
            ),
        )
    )
    with Store.open(path) as after:
        stored = after.memories.load([10, 11, 12, 13])
        assert [stored[key].memory.namespace for key in stored] == ["project:cli", *(space for space, _, _ in kept)]


def test_earlier_memories_from_files_are_external_until_trusted(path: Path) -> None:
    """A conversion treats files as external. Memories of agents keep their origin, and the change is logged."""
    migrate(
        home_of(
            path,
            before("CREATE TABLE allowed_folder"),
            memory(10, path="/a/.mnemonics/issue/x.md", origin="document"),
            memory(11, path="/a/.mnemonics/issue/y.md"),
            "DELETE FROM change",
        )
    )
    with Store.open(path) as after:
        assert 10 in after.changes.since(0)
        assert after.memories.load([10])[10].memory.origin is Origin.EXTERNAL
        with after.transaction():
            after.mnemonics.allow("/a/.mnemonics")
        origins = [held.memory.origin for held in after.memories.load([10, 11]).values()]

    assert sorted(origins) == [Origin.ASSISTANT, Origin.DOCUMENT]


def test_an_archive_with_a_queue_of_requests_keeps_its_ledger(path: Path) -> None:
    """The tables of the former queue of model requests are dropped with their rows. Costs and observations remain."""
    migrate(
        home_of(
            path,
            before("DROP TABLE batch"),
            "INSERT INTO batch (id, token, at, state) VALUES (1, 't', 5, 'sent')",
            "INSERT INTO job (exchange, digest, state, due, batch) VALUES (1, 'd', 'sent', 0, 1)",
            """INSERT INTO call (run, at, model, reason, exchange, digest, batch, state, cost)
               VALUES ('r', 5, 'm', 'backfill', 1, 'd', 1, 'reserved', 700)""",
        )
    )

    with Store.open(path) as store:
        [row] = store.ledger.by_model()
        assert (row.model, row.reason, row.calls, row.unanswered, row.cost) == ("m", "backfill", 1, 1, 700)
        assert [each.observation.title for each in store.observations.of_exchange(1)] == ["Brass it is"]
        with store.transaction():
            store.exchanges.delete([1])
        assert store.exchanges.load([1]) == {}


def test_transcripts_are_read_again_for_what_an_old_version_did_not_store(path: Path) -> None:
    """Sources with repeated lines, and those of Claude Code with sub-agents, are scheduled."""
    for text, coverage in (("CREATE TABLE repetition", "repeated"), ("CREATE TABLE subagent_call", "subagent")):
        path.unlink(missing_ok=True)
        migrate(
            home_of(
                path,
                before(text),
                f"""UPDATE source SET rules = 'new', agent = 'claude-code', coverage = '{{"{coverage}": 2}}'""",
            )
        )
        with Store.open(path) as store:
            assert [source.archived for source in store.sources.outdated(scheduled_only=True)] == ["test/one.jsonl"]
