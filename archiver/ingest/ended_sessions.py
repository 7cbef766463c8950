"""Queue of sessions that ended. It loads fast, because hooks use it.

Sessions in the queue are archived immediately. The script `hooks/palaver-hook.sh`, or `palaver hooks run`, appends
each call of an agent's hook to the queue, one JSON object per line. A call contains the path of the transcript and no
text of the conversation. A process that archives the sessions renames the queue first, and deletes it afterwards. If
the process fails, the renamed file remains, and the next process reads it too.
"""

import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import orjson

from ...core.home import Home
from ..formats.json_values import mapping, string

_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of the queue that are read. A longer queue is dropped, because a scan finds the transcripts as well."""
_CALL_MAX: Final = 8192
"""Maximum bytes of a hook's call. A longer call is not recorded, because a scan finds the transcript as well."""
_TAKEN: Final = ".taken"


def has_ended_sessions(home: Home) -> bool:
    """Return whether an ended session is queued. A queue that an interrupted run left over counts too."""
    try:
        return home.ended_sessions.stat().st_size > 0 or bool(_taken(home))
    except OSError:
        return bool(_taken(home))


def record_end(home: Home, call: bytes) -> None:
    """Append the call of a hook to the queue, as one line. JSON strings contain no line breaks."""
    line = b"".join(call.splitlines())
    if 0 < len(line) <= _CALL_MAX:
        queue = os.open(home.ended_sessions, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(queue, "ab") as file:
            file.write(line + b"\n")


@contextmanager
def ended_sessions(home: Home) -> Generator[list[Path]]:
    """Yield the queued transcripts that exist. They are removed from the queue if the block succeeds."""
    with suppress(OSError):  # The queue does not exist, or the folder is not writable.
        home.ended_sessions.replace(home.ended_sessions.with_suffix(f".{secrets.token_hex(8)}{_TAKEN}"))
    files = _taken(home)
    yield _transcripts(files)
    for file in files:
        file.unlink(missing_ok=True)


def _taken(home: Home) -> list[Path]:
    """Return the renamed queues. Two processes may read the same queue, because ingesting twice changes nothing."""
    return sorted(home.root.glob(f"{home.ended_sessions.name}.*{_TAKEN}"))


def _transcripts(files: Sequence[Path]) -> list[Path]:
    lines, size = list[bytes](), 0
    for file in files:
        with suppress(OSError):  # Another process deleted the file.
            size += file.stat().st_size
            if size > _BYTES_MAX:
                return []
            lines += file.read_bytes().splitlines()
    paths: dict[Path, None] = {}
    for line in lines:
        with suppress(ValueError, OSError):  # A line is not JSON, or a path is impossible.
            path = Path(string(mapping(orjson.loads(line)).get("transcript_path")))
            if path.is_absolute() and path.is_file():
                paths[path] = None
    return list(paths)
