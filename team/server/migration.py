"""Migration of a team database: numbered files of SQL, which only the owner of the database runs."""

from importlib.resources import files
from typing import Any, Final

import psycopg
from psycopg import Connection

from ...core.errors import TeamDatabaseUnusable

_LOCK: Final = 0x70616C61766572
"""Key of the advisory lock that excludes a second migration."""


def migrations() -> dict[int, str]:
    """Return the SQL of each version of the schema, in order."""
    folder = files(__package__).joinpath("schema")
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".sql"))
    return {int(name.partition("_")[0]): folder.joinpath(name).read_text("utf-8") for name in names}


def latest() -> int:
    """Return the version of the schema that this program needs."""
    return max(migrations())


def version_of(connection: Connection[Any]) -> int:
    """Return the version of the schema of a database, or 0 for an empty one."""
    row = connection.execute("SELECT to_regclass('palaver.schema_version') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("SELECT max(version) FROM palaver.schema_version").fetchone()
    return (row and row[0]) or 0


def migrate(url: str) -> list[int]:
    """Create or upgrade the schema, as a role that may create roles. Return the versions that were added.

    All versions are added in one transaction, so that a failure changes nothing.

    Raises:
        TeamDatabaseUnusable: The database cannot be reached or changed, or a newer version of Palaver made its schema.
    """
    try:
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            current = version_of(connection)
            if current > latest():
                raise newer_schema(current)
            if not current:
                connection.execute("CREATE SCHEMA IF NOT EXISTS palaver")
                connection.execute(
                    """CREATE TABLE palaver.schema_version (
                        version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"""
                )
            added = [version for version in migrations() if version > current]
            for version in added:
                connection.execute(migrations()[version].encode())
                connection.execute("INSERT INTO palaver.schema_version (version) VALUES (%s)", (version,))
            if not current:
                connection.execute("GRANT SELECT ON palaver.schema_version TO palaver_app")
            return added
    except psycopg.Error as error:
        raise TeamDatabaseUnusable(
            f"The database cannot be migrated: {str(error).strip()}",
            hint="Give the URL of a role that may create roles in PostgreSQL 16 or newer with pgvector.",
        ) from None


def newer_schema(version: int) -> TeamDatabaseUnusable:
    """Return the error for a schema of a newer version of Palaver."""
    return TeamDatabaseUnusable(
        f"The database has schema {version}; this program knows schema {latest()}",
        hint="Update Palaver on this machine.",
    )
