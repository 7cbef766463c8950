"""Push in a process of its own, which kills itself at a step that the test chooses.

Arguments: the home, and the number of the step at which to die (0: never). A step is the begin or the end of a write to
the database or of a request to the server. The output is the number of steps.
"""

import sys
from pathlib import Path

from palaver.archiver.store.database import Database
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.team.client import push
from palaver.team.client.push import TeamPush
from palaver.team.client.server_connection import ServerConnection

from .counted_steps import Steps


def count_steps(last: int) -> Steps:
    """Kill this process at the step with this number."""
    steps = Steps(last)
    Database.run = steps.counted(Database.run)  # type: ignore[method-assign]
    Database.run_many = steps.counted(Database.run_many)  # type: ignore[method-assign]
    ServerConnection.send = steps.counted(ServerConnection.send)  # type: ignore[method-assign]
    return steps


def main() -> None:
    """Push in small batches."""
    setattr(push, "ITEMS_MAX", 4)  # noqa: B010 - a constant
    steps = count_steps(int(sys.argv[2]))
    with Archive(Home(Path(sys.argv[1]))) as archive:
        TeamPush(archive).run()
    print(steps.end())


if __name__ == "__main__":
    main()
