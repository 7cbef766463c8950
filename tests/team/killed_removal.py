"""Removal of a person in a process of its own, which kills itself at a statement that the test chooses.

Arguments: URL of the administrator, names of the team and of the person, number of the step at which to die (0: never).
The output is the number of steps.
"""

import sys

from psycopg import Connection, Cursor

from palaver.team.server import identity, removal
from palaver.team.server.database import administering

from .counted_steps import Steps


def main() -> None:
    """Remove a person."""
    url, team, person, last = sys.argv[1:]
    steps = Steps(int(last))
    Connection.execute = steps.counted(Connection.execute)  # type: ignore[method-assign]
    Connection.commit = steps.counted(Connection.commit)  # type: ignore[method-assign]
    Cursor.executemany = steps.counted(Cursor.executemany)  # type: ignore[method-assign]
    with administering(url) as connection:
        removal.remove(connection, identity.find_team(connection, team), person)
    print(steps.end())


if __name__ == "__main__":
    main()
