"""Removal of a person by the administrator: access ends, and everything that the person shares is withdrawn.

The owner of the schema sees no item. So the items are withdrawn in the role of the application, as the person who
shares them: row security keeps those of all others.
"""

from typing import NamedTuple
from uuid import UUID

from ...core.errors import TeamDatabaseUnusable
from . import identity, pushes
from .database import OWNER, ROLE, Database, scope
from .identity import Caller


class Removal(NamedTuple):
    """Numbers of revoked machines, deleted items, and full copies that stay in their store until it is cleaned."""

    machines: int
    items: int
    full_copies: int


def remove(connection: Database, team: UUID, name: str) -> Removal:
    """Revoke a person, and withdraw everything that the person shares, within `administering`.

    A push that has begun is finished first, because it has locked its machine. What it stored is withdrawn too.

    Raises:
        InvalidInput: There is no such person.
        TeamDatabaseUnusable: The administrator may not use the role of the application.
    """
    person = identity.find_person(connection, team, name)
    machines = identity.revoke(connection, team, name)
    items = withdraw(connection, team, person)
    connection.execute("UPDATE palaver.person SET removed = now() WHERE team = %s AND id = %s", (team, person))
    identity.record(connection, team, person, "remove", name)
    full_copies = connection.execute(
        "SELECT FROM palaver.raw_object WHERE team = %s AND person = %s AND withdrawn", (team, person)
    ).rowcount
    return Removal(machines, items, full_copies)


def withdraw(connection: Database, team: UUID, person: UUID) -> int:
    """Withdraw everything that a person shares. Return the number of deleted items."""
    row = connection.execute("SELECT pg_has_role(session_user, %s, 'SET')", (ROLE,)).fetchone()
    if row != (True,):
        raise TeamDatabaseUnusable(
            f"Your role may not act as {ROLE}", hint=f"Run in psql: GRANT {ROLE} TO CURRENT_USER WITH INHERIT FALSE"
        )
    connection.execute(f"SET LOCAL ROLE {ROLE}".encode())
    scope(connection, team, person)
    deleted = pushes.withdraw_all(connection, Caller(team, person, None, frozenset(), "", 0), pushes.NOBODY)
    scope(connection, None)
    connection.execute(f"SET LOCAL ROLE {OWNER}".encode())
    return deleted
