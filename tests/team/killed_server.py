"""Team server in a process of its own, which kills itself at a statement that the test chooses.

Arguments: URL of the database, number of the step at which to die (0: never), folder with the store of full copies and
its key. A step is the begin or the end of a statement, of a transaction, or of a write or a deletion in the store. The
first line of output is the URL of the server.
"""

import sys
from pathlib import Path

import uvicorn
from psycopg import Connection, Cursor

from palaver.archiver.redaction.redactor import Redactor
from palaver.observe.sync.shared_folder import LocalFolder
from palaver.team.server.app import ServerSettings, TeamServer, application
from palaver.team.server.database import TeamDatabase
from palaver.team.server.raw_store import RawStore
from palaver.team.server.serving import listening

from .counted_steps import Steps


def count_steps(last: int) -> None:
    """Kill this process at the step with this number."""
    steps = Steps(last)
    Connection.execute = steps.counted(Connection.execute)  # type: ignore[method-assign]
    Connection.commit = steps.counted(Connection.commit)  # type: ignore[method-assign]
    Cursor.executemany = steps.counted(Cursor.executemany)  # type: ignore[method-assign]
    LocalFolder.write = steps.counted(LocalFolder.write)  # type: ignore[method-assign]
    LocalFolder.delete = steps.counted(LocalFolder.delete)  # type: ignore[method-assign]


def main() -> None:
    """Serve until killed."""
    database = TeamDatabase(sys.argv[1], size=1)
    listener = listening("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    # The audience stays, so that a token is valid for the next process.
    settings = ServerSettings("http://team.test", "test")
    folder = Path(sys.argv[3])
    store, _ = RawStore.opened(str(folder / "store"), folder / "raw.key")
    app = application(TeamServer(database, settings, Redactor(b"k" * 16), raw_store=store))
    count_steps(int(sys.argv[2]))
    print(address, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none")).run(sockets=[listener])


if __name__ == "__main__":
    main()
