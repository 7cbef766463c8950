"""Graphs (HNSW) of the vectors of large teams. Without one, a search compares all vectors of a team.

Each large team has an index of its own: in a graph of several teams, a search would mostly visit rows that row security
hides. Writing into a graph takes 15 times as long, so small teams have none. The owner's command `palaver team clean`
adds them, because the application's role may create nothing.
"""

from typing import Final

import psycopg

from ...core.errors import TeamDatabaseUnusable
from .database import OWNER, Database

LARGE: Final = 20_000
"""Number of vectors from which a team has a graph. Comparing as many takes 20 ms."""
_MEMORY: Final = "512MB"
"""Memory for building a graph: 1.1 KB a vector. With less, PostgreSQL builds it slowly."""
_CONSTRUCTION: Final = 128
"""Candidates per vector while a graph is built. 64 finds 94 % of the 50 nearest vectors, 128 finds 99 %."""


def index_large_teams(url: str, least: int = LARGE) -> list[str]:
    """Create the missing indexes of teams with at least `least` vectors. Return the IDs of these teams.

    Searches and pushes continue meanwhile.

    Raises:
        TeamDatabaseUnusable: The database cannot be used by this role.
    """
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"SET ROLE {OWNER}")
            connection.execute(f"SET maintenance_work_mem = '{_MEMORY}'")
            added = list[str]()
            for team, number in _without_index(connection, least):
                name = f"near_{team.replace('-', '')}"
                # A build that was interrupted leaves an index that cannot be used.
                connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS palaver.{name}".encode())
                connection.execute(
                    f"""CREATE INDEX CONCURRENTLY {name} ON palaver.embedding_{number}
                    USING hnsw (vec halfvec_cosine_ops) WITH (ef_construction = {_CONSTRUCTION})
                    WHERE team = '{team}'""".encode()
                )
                added.append(team)
            return added
    except psycopg.Error as error:
        raise TeamDatabaseUnusable(
            f"The vectors cannot be indexed: {str(error).strip()}",
            hint="Give the URL of the role that ran `palaver team migrate`.",
        ) from None


def _without_index(connection: Database, least: int) -> list[tuple[str, int]]:
    """Return large teams without a valid index, each with the number of its partition."""
    rows = connection.execute(
        """SELECT large.team::text, number
        FROM palaver.large_teams(%s) large JOIN generate_series(0, 15) number
            ON satisfies_hash_partition('palaver.embedding'::regclass, 16, number, large.team)
        WHERE NOT EXISTS (SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
            WHERE relname = 'near_' || replace(large.team::text, '-', '') AND indisvalid
                AND relnamespace = 'palaver'::regnamespace)
        ORDER BY 1""",
        (least,),
    )
    return [(team, number) for team, number in rows]
