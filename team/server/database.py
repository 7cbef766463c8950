"""Connections of the server to PostgreSQL. Row security restricts each transaction to a team and a person."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeAlias
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg_pool import ConnectionPool, PoolTimeout

from ...core.errors import TeamDatabaseUnusable, TeamRefused
from .migration import latest, newer_schema, version_of

Database: TypeAlias = Connection[tuple[Any, ...]]

ROLE = "palaver_app"
OWNER = "palaver_owner"
_WAIT = 10.0
"""Maximum seconds to wait for a free connection."""


class TeamDatabase:
    """Pool of connections as the role of the application, which no policy of row security exempts."""

    def __init__(self, url: str, *, size: int = 8) -> None:
        """Connect, and check the schema and the rights of the role.

        Raises:
            TeamDatabaseUnusable: The database cannot be reached, has another schema, or the role has too many rights.
        """
        self._pool = ConnectionPool[Database](
            url, min_size=1, max_size=size, timeout=_WAIT, open=False, check=ConnectionPool.check_connection
        )
        try:
            with psycopg.connect(url) as connection:  # names the reason of a failure, unlike the pool
                _check(connection)
            self._pool.open(wait=True, timeout=_WAIT)
        except (psycopg.Error, PoolTimeout) as error:
            self._pool.close()
            reason = str(error).strip()
            raise TeamDatabaseUnusable(
                f"The database cannot be used: {reason}", hint="Check its URL, and that PostgreSQL runs."
            ) from None

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @contextmanager
    def transaction(self, team: UUID | None = None, person: UUID | None = None) -> Generator[Database]:
        """Run a transaction that sees the rows of a team that a person may see, or none without a team.

        Raises:
            TeamRefused: The database cannot answer, fails, refuses a value, or row security refuses a row.
        """
        try:
            with self._pool.connection() as connection:
                scope(connection, team, person)
                yield connection
        except psycopg.DataError as error:
            raise TeamRefused(
                f"A value cannot be stored: {error.diag.message_primary or error}", hint="Update Palaver.", status=422
            ) from None
        except psycopg.errors.InsufficientPrivilege:
            raise TeamRefused("Another person owns this item", hint="Nothing was stored.", status=403) from None
        except (psycopg.OperationalError, PoolTimeout):
            raise TeamRefused("The database of the team does not answer", hint="Try again later.", status=503) from None
        except psycopg.Error as error:
            # Its message and its traceback can quote rows.
            log = logging.getLogger(__name__)
            log.error("SQLSTATE %s in %s", error.sqlstate, _function_of(error))  # noqa: TRY400
            raise TeamRefused("The server failed", hint="See its log.", status=500) from None


def scope(connection: Database, team: UUID | None, person: UUID | None = None) -> None:
    """Restrict a transaction to the rows of a team that a person may see. The next transaction begins without them."""
    connection.execute(
        "SELECT set_config('palaver.team', %s, true), set_config('palaver.person', %s, true)",
        (str(team or ""), str(person or "")),
    )


@contextmanager
def administering(url: str) -> Generator[Database]:
    """Run a transaction as the owner of the schema, for the commands of an administrator.

    Raises:
        TeamDatabaseUnusable: The database cannot be used by this role.
    """
    try:
        with psycopg.connect(url) as connection:
            _check_version(connection)
            connection.execute("SET LOCAL ROLE palaver_owner")
            yield connection
    except psycopg.Error as error:
        raise TeamDatabaseUnusable(
            f"The database cannot be used: {str(error).strip()}",
            hint="Give the URL of the role that ran `palaver team migrate`.",
        ) from None


def _function_of(error: psycopg.Error) -> str:
    """Return the file and the name of the function of this package whose statement failed."""
    folder = Path(__file__).parent
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).parent == folder]
    return f"{Path(frames[-1].filename).name}: {frames[-1].name}" if frames else "another package"


def _check(connection: Database) -> None:
    _check_version(connection)
    unsafe = connection.execute(
        """SELECT current_user FROM pg_roles
        WHERE rolname IN (current_user, session_user) AND (rolsuper OR rolbypassrls OR rolcreaterole)
            OR rolname IN ('palaver_owner', 'palaver_finder', 'palaver_metrics') AND pg_has_role(oid, 'MEMBER')"""
    ).fetchone()
    if unsafe:
        raise TeamDatabaseUnusable(
            f"The role {unsafe[0]} can bypass row security", hint=f"Connect as {ROLE}, which owns nothing."
        )


def _check_version(connection: Database) -> None:
    version = version_of(connection)
    if version > latest():
        raise newer_schema(version)
    if version < latest():
        raise TeamDatabaseUnusable(
            f"The database has schema {version}; this program needs schema {latest()}",
            hint="Run `palaver team migrate --database URL` as the owner.",
        )
