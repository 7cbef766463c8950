"""A database with any earlier schema is migrated with all of its content."""

from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from palaver.archiver.store import Store
from palaver.archiver.store.database import MIGRATIONS
from palaver.core.conversation import Kind
from palaver.core.memory import SESSION_LIFETIME

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


def database(folder: Path, step: int) -> Path:
    """Create a database with the schema after the first `step` migrations."""
    path = folder / "palaver.db"
    connection = apsw.Connection(str(path))
    for statement in MIGRATIONS[:1]:
        connection.execute(statement)
    connection.execute(ROWS)
    for statement in MIGRATIONS[1:step]:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={step}")
    connection.close()
    return path


def schema(path: Path) -> set[str]:
    connection = apsw.Connection(str(path))
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    connection.close()
    return set(map(str, rows))


@pytest.mark.parametrize("step", range(1, len(MIGRATIONS) + 1))
def test_every_schema_is_migrated(step: int, tmp_path: Path) -> None:
    """Content of an earlier version is unchanged, and the schema equals that of a new database."""
    path = database(tmp_path, step)
    with Store.open(path) as store:
        stored = store.exchanges.load([1])[1]
        assert [(turn.kind, turn.text) for turn in stored.exchange.turns] == [(Kind.PROMPT, "brass kettle")]
        assert [each.observation.title for each in store.observations.of_exchange(1)] == ["Brass it is"]
        assert [each.data for each in store.vectors.all("fake/1")] == [b"\x00\x3c\x00\x00"]
        assert store.sessions.load(1).title == "A title"
        assert store.sources.locate(["r1"]) == {"r1": (1, 1)}
        assert (store.changes.last(), store.schema) == (3, (len(MIGRATIONS), len(MIGRATIONS)))
        integrity = store.integrity
        assert not integrity.damage()
        assert not integrity.dangling()
        assert not (
            integrity.unreadable_sources()
            | integrity.outside_source()
            | {*integrity.without_evidence(), *integrity.without_content()}
        )
    with TemporaryDirectory() as folder:
        fresh = Path(folder) / "palaver.db"
        Store.create(fresh).close()
        assert schema(path) == schema(fresh)


def test_vectors_without_tokens_are_kept_until_they_are_replaced(tmp_path: Path) -> None:
    """Vectors of the packaged model without token embeddings remain searchable and are computed again."""
    before = next(step for step, statement in enumerate(MIGRATIONS) if "CREATE TABLE token" in statement)
    path = database(tmp_path, before)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE vector SET model = 'all-MiniLM-L6-v2-int8/1'")
    connection.execute("UPDATE item SET embedded = 'all-MiniLM-L6-v2-int8/1'")
    connection.close()

    with Store.open(path) as store:
        model = "all-MiniLM-L6-v2-int8/2"
        assert [(each.item, each.data, each.token_bits) for each in store.vectors.all(model)] == [
            (1, b"\0\x3c\0\0", b"")
        ]
        assert store.vectors.unembedded(model, 9) == [2, 1]


def test_golden_rules_of_agents_wait_for_approval_after_an_upgrade(tmp_path: Path) -> None:
    """Golden rules of agents return to their former type and keep their confidence. The user's golden rules stay."""
    before = next(step for step, statement in enumerate(MIGRATIONS) if "origin != 'human'" in statement)
    path = database(tmp_path, before)
    connection = apsw.Connection(str(path))
    rows = ((10, "golden_rule", "assistant", "preference"), (11, "golden_rule", "human", "preference"))
    for key, kind, origin, promoted_from in (*rows, (12, "session", "assistant", "")):
        family = "preference" if promoted_from else kind
        connection.execute("INSERT INTO item (key, kind, at) VALUES (?, 'memory', 5)", (key,))
        connection.execute(
            f"""INSERT INTO memory (item, content, type, title, namespace, project, level, importance, tags, metadata,
                source, origin, session_id, path, pinned, family, hash, confidence, successes, failures, strikes,
                promoted_from, state, created, updated) VALUES (?, ?, ?, '', 'global', '', '', 0.5, '[]', '{{}}',
                '', ?, '', '', 0, '{family}', ?, 0.9, 6, 0, 0, ?, 'active', 5, 5)""",
            (key, str(key), kind, origin, str(key), promoted_from),
        )
    connection.close()

    with Store.open(path) as store:
        held = store.memories.load([10, 11, 12])
        assert [held[key].memory.type for key in held] == ["preference", "golden_rule", "session"]
        assert (held[10].stats.confidence, held[10].stats.promoted_from) == (0.9, "")
        assert [held[key].memory.valid_until for key in held] == [None, None, 5 + SESSION_LIFETIME]
        assert 10 in store.changes.since(0)
