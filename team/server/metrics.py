"""Use of agents in a team, only for groups of at least three people."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from .database import Database, scope


class GroupUsage(Struct, frozen=True):
    """Use of one model by at least three people, in a project on one day."""

    project: str
    day: str
    agent: str
    model: str
    people: int
    sessions: int
    exchanges: int
    tokens_in: int
    tokens_out: int
    nano_dollars: int


def usage(connection: Database, team: UUID) -> Sequence[GroupUsage]:
    """Return the use of a team, the latest day first. Totals of these rows reveal no smaller group."""
    scope(connection, team)
    rows = connection.execute(
        """SELECT project, day, agent, model, people, sessions, exchanges, tokens_in, tokens_out, nano_dollars
        FROM palaver.metrics ORDER BY day DESC, project, agent, model"""
    ).fetchall()
    return [GroupUsage(*row) for row in rows]
