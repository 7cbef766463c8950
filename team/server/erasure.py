"""Erasure of deleted items from disk.

Searches do not return a deleted row, but its bytes stay in the table, in the index and in the write-ahead log until
PostgreSQL rewrites them. So the server promises dates, and the owner's command `palaver team clean` keeps them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
from msgspec import Struct

from ...core.errors import TeamDatabaseUnusable
from .database import OWNER, Database


class Promise(Struct, frozen=True):
    """Maximum days until the operator cleans the tables, and days for which backups and the log are kept."""

    clean_days: int = 7
    backup_days: int = 30


def record_deletion(connection: Database, team: UUID, person: UUID, items: int) -> None:
    """Record that the bytes of deleted items may be on disk."""
    connection.execute("INSERT INTO palaver.erasure (team, person, items) VALUES (%s, %s, %s)", (team, person, items))


def promised(connection: Database, team: UUID, person: UUID, promise: Promise) -> str:
    """Return a sentence about the deletions of a person, or an empty text without any in the backups."""
    row = connection.execute(
        """SELECT sum(items), min(at) FILTER (WHERE cleaned IS NULL), max(coalesce(cleaned, at))
        FROM palaver.erasure WHERE team = %s AND person = %s
            AND (cleaned IS NULL OR cleaned > now() - make_interval(days => %s))""",
        (team, person, promise.backup_days),
    ).fetchone()
    if row is None or not row[0]:
        return ""
    items, waiting, latest = row
    now = datetime.now(UTC)
    if waiting is None:
        disk, by = "and from disk", latest
    else:
        by = max(now, waiting + timedelta(days=promise.clean_days))
        late = "; the operator has to run `palaver team clean`" if by == now else ""
        disk = f"from disk by {by:%Y-%m-%d}{late}"
    backups = by + timedelta(days=promise.backup_days)
    return f"{items:,} deleted: erased from search now, {disk}, from backups by {backups:%Y-%m-%d}."


def clean(url: str) -> Sequence[str]:
    """Rewrite the partitions of teams with deletions, with their indexes. Return the names of the partitions.

    Searches and pushes of all teams in these partitions wait meanwhile.

    Raises:
        TeamDatabaseUnusable: The database cannot be used by this role.
    """
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"SET ROLE {OWNER}")
            waiting = connection.execute("SELECT team, id FROM palaver.erasure WHERE cleaned IS NULL").fetchall()
            tables = connection.execute(
                r"""SELECT DISTINCT format('palaver.%%I', relname)
                FROM generate_series(0, 15) AS number, unnest(%s::uuid[]) AS team, pg_class
                WHERE satisfies_hash_partition('palaver.item'::regclass, 16, number, team) AND relkind = 'r'
                    AND relispartition AND relnamespace = 'palaver'::regnamespace AND relname LIKE '%%\_' || number
                ORDER BY 1""",
                ([team for team, _ in waiting],),
            ).fetchall()
            for (table,) in tables:
                connection.execute(f"VACUUM (FULL, ANALYZE) {table}".encode())
            connection.execute(
                "UPDATE palaver.erasure SET cleaned = now() WHERE id = ANY(%s)", ([number for _, number in waiting],)
            )
            connection.execute("RESET ROLE")
            if tables:
                connection.execute("CHECKPOINT")  # removes the files of the old tables
            return [table for (table,) in tables]
    except psycopg.Error as error:
        raise TeamDatabaseUnusable(
            f"The tables cannot be rewritten: {str(error).strip()}",
            hint="Give the URL of the role that ran `palaver team migrate`, as a superuser or with pg_checkpoint.",
        ) from None
