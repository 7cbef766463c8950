"""Push in a process of its own, which kills itself at a step that the test chooses.

Arguments: the home, and the number of the step at which to die (0: never). A step is the begin or the end of a write to
the database or of a request to the server. The output is the number of steps.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from palaver.archiver.store.database import Database
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.team.client import push
from palaver.team.client.push import TeamPush
from palaver.team.client.server_connection import ServerConnection


def die_at(last: int) -> Callable[[], int]:
    """Kill this process at the step with this number. Return a function that returns the number of steps so far."""
    steps = count(1)

    def step() -> None:
        if next(steps) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            step()
            result = method(*arguments, **options)
            step()
            return result

        return run

    Database.run = counted(Database.run)  # type: ignore[method-assign]
    Database.run_many = counted(Database.run_many)  # type: ignore[method-assign]
    ServerConnection.send = counted(ServerConnection.send)  # type: ignore[method-assign]
    return lambda: next(steps) - 1


def main() -> None:
    """Push in small batches."""
    setattr(push, "ITEMS_MAX", 4)  # noqa: B010 - a constant
    steps = die_at(int(sys.argv[2]))
    with Archive(Home(Path(sys.argv[1]))) as archive:
        TeamPush(archive).run()
    print(steps())


if __name__ == "__main__":
    main()
