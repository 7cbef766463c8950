"""Process that erases a session and may kill itself, or that searches for the session repeatedly.

deletion_worker.py kill ROOT SESSION N [HOME]   erase and be killed at step N, or print the number of steps
deletion_worker.py search ROOT SESSION          print `seen` when the session is found, `gone` when it no longer is
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.observe.deletion.deleter import Deleter
from palaver.search.archive_search import ArchiveSearch

from ... import crash_injection


def kill(home: Home, session: str, at: int) -> None:
    wanted = DeletionRequest((session,), erase=True)
    with Deleter(home) as deleter:
        token = deleter.preview(wanted).token
        print(crash_injection.run_with_crash(lambda: deleter.delete(wanted, token), at))


def search(home: Home, session: str) -> None:
    last = ""
    with ArchiveSearch(home) as layers:
        while True:
            hits = layers.find(Query.parse("PromptCanary checkout")).hits
            found = "seen" if any(hit.session_id == session for hit in hits) else "gone"
            if found != last:
                print(found, flush=True)
                last = found
            time.sleep(0.01)


def end(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)


if __name__ == "__main__":
    command, root, session, *rest = sys.argv[1:]
    if command == "search":
        signal.signal(signal.SIGTERM, end)
        search(Home(Path(root) / "home"), session)
    kill(Home(Path(root) / (rest[1] if rest[1:] else "home")), session, int(rest[0]))
