"""Row security: two teams with two people each, every statement, and the catalogue of the database."""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection, sql

from palaver.core.errors import TeamDatabaseUnusable
from palaver.team.server.database import TeamDatabase, administering, scope
from palaver.team.server.migration import latest, migrate, migrations

from .members import Machine, exchange, full_copy, invited, memory, session, usage
from .postgres import DatabaseUrls, database

PEOPLE = {"ann": "red", "bob": "red", "cid": "blue", "dan": "blue"}
SECURITY_DEFINERS = {
    "has_full_copies",
    "team_of_device",
    "team_of_invitation",
    "team_of_token",
    "text_candidates",
    "matching_items",
    "large_teams",
}
"""Functions that read without the policies of the application's role. Each returns only IDs, or a yes or no."""


class Member(NamedTuple):
    """Person of a test, with the IDs of what the person shares."""

    team: UUID
    person: UUID
    visible: str
    hidden: str


@pytest.fixture(scope="module")
def members(url: str, urls: DatabaseUrls) -> dict[str, Member]:
    """Two teams of two people.

    Each shares a session, an exchange with its full copy, a memory, and its use; and withdrew another exchange.
    """
    found = dict[str, Member]()
    for name, team in PEOPLE.items():
        machine = Machine(url, invited(urls, name, team))
        shown, used, gone = exchange(f"visible {name}"), usage("2026-01-01", name), exchange(f"gone {name}")
        copies = [full_copy(shown, f"output {name}"), full_copy(gone, "gone")]
        machine.push([session(name), shown, memory(f"memory {name}"), used, gone, *copies])
        machine.push(withdrawn=[gone.id, copies[1].id])
        joined = machine.joined
        found[name] = Member(UUID(joined.team), UUID(joined.person), shown.id, used.id)
        invited(urls, name, team)
    return found


@pytest.fixture
def app(urls: DatabaseUrls) -> Iterator[Connection]:
    """Connection as the application's role, which is rolled back."""
    with psycopg.connect(urls.app) as connection:
        yield connection
        connection.rollback()


def tables(connection: Connection) -> dict[str, list[str]]:
    """Return the tables that the application may read, with their columns of IDs of a team or a person."""
    rows = connection.execute(
        """SELECT c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'palaver'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND a.attname IN ('team', 'person', 'visibility') AND has_any_column_privilege(c.oid, 'SELECT')
        GROUP BY c.relname"""
    )
    return dict(rows.fetchall())


@pytest.mark.parametrize("reader", PEOPLE)
def test_each_table_shows_only_rows_of_the_team(app: Connection, members: dict[str, Member], reader: str) -> None:
    """Without any filter, each table that the application may read returns only rows that the person may see."""
    member = members[reader]
    scope(app, member.team, member.person)
    for table, columns in tables(app).items():
        shown = sql.SQL(", ").join(map(sql.Identifier, columns))
        rows = app.execute(sql.SQL("SELECT {} FROM palaver.{}").format(shown, sql.Identifier(table))).fetchall()
        assert {row[columns.index("team")] for row in rows} <= {member.team}, table
        if "visibility" in columns:
            hidden = {row[columns.index("person")] for row in rows if row[columns.index("visibility")] == 1}
            assert hidden <= {member.person}, table
        assert rows or table in {"challenge", "entry", "term", "embedding"}, table


def test_without_a_team_nothing_is_visible(app: Connection, members: dict[str, Member]) -> None:
    """A transaction that sets no team sees no row of any table."""
    assert members
    for table in tables(app):
        assert app.execute(sql.SQL("SELECT FROM palaver.{}").format(sql.Identifier(table))).fetchall() == [], table
    assert app.execute("SELECT FROM palaver.team").fetchall() == []


@pytest.mark.parametrize("writer", ["bob", "cid"])
def test_nobody_changes_the_items_of_another(app: Connection, members: dict[str, Member], writer: str) -> None:
    """Updates and deletions without a filter reach only the person's own items and tombstones."""
    member = members[writer]
    scope(app, member.team, member.person)
    for statement in (
        "UPDATE palaver.item SET seq = seq + 1 RETURNING person",
        "UPDATE palaver.gone SET seq = seq + 1 RETURNING person",
        "UPDATE palaver.raw_object SET withdrawn = true RETURNING person",
        "DELETE FROM palaver.raw_object RETURNING person",
        "DELETE FROM palaver.item RETURNING person",
        "DELETE FROM palaver.gone RETURNING person",
    ):
        assert {person for (person,) in app.execute(statement.encode())} == {member.person}, statement


@pytest.mark.parametrize("field", ["team", "person"])
def test_nobody_inserts_for_another(app: Connection, members: dict[str, Member], field: str) -> None:
    """A row of another team, or of another person, is refused."""
    member, foreign = members["ann"], members["bob" if field == "person" else "cid"]
    scope(app, member.team, member.person)
    raw = "INSERT INTO palaver.raw_object (team, name, person) VALUES (%s, 'x', %s)"
    place = (foreign.team, member.person) if field == "team" else (member.team, foreign.person)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"), app.transaction():
        app.execute(raw, place)
    for table, columns in (("gone", "id, device, seq"), ("item", "id, device, seq")):
        extra = {"item": ", visibility, kind, project_id, project, path, body, hash", "gone": ""}[table]
        values = {"item": ", 2, 'memory', '', '', '', '', ''", "gone": ""}[table]
        statement = f"INSERT INTO palaver.{table} (team, person, {columns}{extra}) VALUES (%s, %s, %s, %s, 1{values})"
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"), app.transaction():
            app.execute(statement.encode(), (*place, uuid4(), uuid4()))


@pytest.mark.parametrize("action", ["SELECT", "UPDATE", "DELETE"])
def test_partitions_cannot_be_used_directly(app: Connection, members: dict[str, Member], action: str) -> None:
    """The application has no right on a partition, whose policies PostgreSQL would not apply."""
    scope(app, members["ann"].team, members["ann"].person)
    for number in range(16):
        statement = {
            "SELECT": f"SELECT FROM palaver.item_{number}",
            "UPDATE": f"UPDATE palaver.item_{number} SET seq = 0",
            "DELETE": f"DELETE FROM palaver.item_{number}",
        }[action]
        with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
            app.execute(statement.encode())


@pytest.mark.parametrize("role", ["palaver_owner", "palaver_finder", "palaver_metrics", "postgres"])
def test_the_application_cannot_become_another_role(app: Connection, role: str) -> None:
    """A statement cannot leave the policies by changing the role, nor by turning them off."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))


def test_settings_end_with_the_transaction(pool: TeamDatabase, members: dict[str, Member]) -> None:
    """The only connection of a pool has no team in its next transaction, also after a failure."""
    ann = members["ann"]
    with pool.transaction(ann.team, ann.person) as connection:
        assert connection.execute("SELECT count(*) FROM palaver.item").fetchone() != (0,)
    with pytest.raises(ZeroDivisionError), pool.transaction(ann.team, ann.person):
        raise ZeroDivisionError
    with pool.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM palaver.item").fetchone() == (0,)
        assert connection.execute("SELECT palaver.team(), palaver.person()").fetchone() == (None, None)


def test_objects_of_full_copies_are_listed_with_their_items(urls: DatabaseUrls, members: dict[str, Member]) -> None:
    """Each full copy of an item is listed, and nothing else is, whichever statement deletes or replaces items."""
    names = "SELECT convert_from(body, 'UTF8') FROM palaver.item WHERE kind = 'raw' ORDER BY 1"
    with psycopg.connect(urls.owner) as connection:
        listed = connection.execute("SELECT name, withdrawn FROM palaver.raw_object ORDER BY 1").fetchall()
        assert listed == [(name, False) for (name,) in connection.execute(names)]
        assert len(listed) == len(members)
        connection.execute(
            "UPDATE palaver.item SET body = 'other' WHERE kind = 'raw' AND person = %s", (members["ann"].person,)
        )
        connection.execute("DELETE FROM palaver.item WHERE person = %s", (members["bob"].person,))
        marked = connection.execute(
            "SELECT person, name = 'other', withdrawn FROM palaver.raw_object ORDER BY person, 2"
        ).fetchall()
        connection.rollback()

    ann, bob = members["ann"].person, members["bob"].person
    assert [row for row in marked if row[0] == ann] == [(ann, False, True), (ann, True, False)]
    assert [row for row in marked if row[0] == bob] == [(bob, False, True)]
    assert sum(withdrawn for _, _, withdrawn in marked) == 2


def test_the_owner_of_the_schema_sees_no_item(urls: DatabaseUrls, members: dict[str, Member]) -> None:
    """Row security binds the owner too, so the commands of an administrator show no conversation."""
    assert members
    with administering(urls.owner) as connection:
        assert connection.execute("SELECT FROM palaver.item").fetchall() == []
        assert connection.execute("SELECT FROM palaver.person").fetchall() != []


def test_every_table_with_a_team_forces_row_security(urls: DatabaseUrls) -> None:
    """Each table, and each partition, enables and forces row security, except the version of the schema."""
    with psycopg.connect(urls.owner) as connection:
        open_tables = connection.execute(
            """SELECT relname FROM pg_class WHERE relnamespace = 'palaver'::regnamespace AND relkind IN ('r', 'p')
            AND NOT (relrowsecurity AND relforcerowsecurity)"""
        ).fetchall()
        without_policy = connection.execute(
            """SELECT c.relname FROM pg_class c WHERE relnamespace = 'palaver'::regnamespace AND relkind IN ('r', 'p')
            AND NOT relispartition AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid)"""
        ).fetchall()

    assert open_tables == [("schema_version",)]
    assert without_policy == [("schema_version",)]


def test_the_application_owns_nothing_and_bypasses_nothing(urls: DatabaseUrls) -> None:
    """The application's role owns no object, is in no other role, and has no attribute of an administrator."""
    with psycopg.connect(urls.owner) as connection:
        attributes = connection.execute(
            """SELECT rolname FROM pg_roles WHERE rolname LIKE 'palaver\\_%'
            AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)"""
        ).fetchall()
        logins = connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'palaver\\_%' AND rolcanlogin")
        owned = connection.execute(
            "SELECT FROM pg_shdepend WHERE refobjid = 'palaver_app'::regrole AND deptype = 'o'"
        ).fetchall()
        groups = connection.execute("SELECT FROM pg_auth_members WHERE member = 'palaver_app'::regrole").fetchall()

        assert (attributes, owned, groups, logins.fetchall()) == ([], [], [], [("palaver_app",)])


def test_functions_with_the_rights_of_their_owner_are_listed(urls: DatabaseUrls) -> None:
    """Each SECURITY DEFINER function is listed, owned by the role with the fewest rights, and fixes its search path."""
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            """SELECT proname, proowner::regrole::text, proconfig::text,
                has_function_privilege('public', oid, 'EXECUTE')
            FROM pg_proc WHERE pronamespace = 'palaver'::regnamespace AND prosecdef"""
        ).fetchall()

    assert {name for name, *_ in rows} <= SECURITY_DEFINERS
    assert {owner for _, owner, _, _ in rows} == {"palaver_finder"}
    assert [name for name, _, settings, public in rows if "search_path=pg_catalog" not in settings or public] == []


def test_the_finder_reads_no_text(urls: DatabaseUrls) -> None:
    """The role of these functions cannot read a body, a title or a key."""
    with psycopg.connect(urls.owner) as connection:
        columns = connection.execute(
            """SELECT DISTINCT column_name::text FROM information_schema.column_privileges
            WHERE grantee = 'palaver_finder' AND table_schema = 'palaver'"""
        ).fetchall()

    allowed = {"team", "hash", "id", "item", "person", "visibility", "at", "tsv", "withdrawn"}
    assert {name for (name,) in columns} <= allowed


def test_text_indexes_keep_no_pending_list(urls: DatabaseUrls) -> None:
    """GIN indexes have `fastupdate` off, so that a deleted text is in no list beside the index."""
    with psycopg.connect(urls.owner) as connection:
        pending = connection.execute(
            """SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
            WHERE a.amname = 'gin' AND NOT coalesce(c.reloptions, '{}') @> '{fastupdate=off}'"""
        ).fetchall()

    assert pending == []


def test_a_migration_again_changes_nothing(urls: DatabaseUrls) -> None:
    """`palaver team migrate` can be repeated."""
    assert migrate(urls.owner) == []


def test_migrations_are_numbered_without_gaps() -> None:
    """The files of the schema have the numbers from 1."""
    assert [*migrations()] == [*range(1, latest() + 1)]


def test_a_newer_schema_is_refused() -> None:
    """Neither the server nor a migration touches the schema of a later version."""
    with database() as urls:
        with psycopg.connect(urls.owner) as connection:
            connection.execute("INSERT INTO palaver.schema_version (version) VALUES (%s)", (latest() + 1,))
        for refuse in (lambda: TeamDatabase(urls.app), lambda: migrate(urls.owner)):
            with pytest.raises(TeamDatabaseUnusable, match="this program knows"):
                refuse()


def test_a_database_without_schema_is_refused() -> None:
    """The server creates no schema: that needs the owner."""
    with database(migrated=False) as urls, pytest.raises(TeamDatabaseUnusable) as refused:
        TeamDatabase(urls.app)

    assert "palaver team migrate" in refused.value.hint


def test_a_failed_migration_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All versions are added in one transaction."""
    broken = {**migrations(), latest() + 1: "CREATE TABLE palaver.x (); SELECT 1 / 0"}
    monkeypatch.setattr("palaver.team.server.migration.migrations", lambda: broken)
    with database(migrated=False) as urls:
        with pytest.raises(TeamDatabaseUnusable, match="division by zero"):
            migrate(urls.owner)
        with psycopg.connect(urls.owner) as connection:
            assert connection.execute("SELECT to_regnamespace('palaver')").fetchone() == (None,)


def test_a_role_that_could_bypass_row_security_is_refused(urls: DatabaseUrls) -> None:
    """The server does not start as an administrator."""
    with pytest.raises(TeamDatabaseUnusable, match="can bypass row security"):
        TeamDatabase(urls.owner)
