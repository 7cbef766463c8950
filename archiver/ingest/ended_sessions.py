"""Queue of sessions that ended, so that their transcripts are archived at once.

The script `hooks/palaver-hook.sh` appends the call of an agent's hook, one JSON object per line. It contains the path
of the transcript and no text of the conversation.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from ...core.home import Home
from ..formats.json_values import mapping, string

_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of the queue that are read. A longer queue is dropped, because a scan finds the transcripts as well."""


def has_ended_sessions(home: Home) -> bool:
    """Return whether the queue has an entry."""
    try:
        return home.ended_sessions.stat().st_size > 0
    except OSError:
        return False


def take_ended_sessions(home: Home) -> list[Path]:
    """Empty the queue, and return the transcripts in it that exist."""
    taken = home.ended_sessions.with_suffix(".taken")
    try:
        home.ended_sessions.replace(taken)
        lines = taken.read_bytes().splitlines() if taken.stat().st_size <= _BYTES_MAX else []
        taken.unlink()
    except OSError:
        return []
    paths: dict[Path, None] = {}
    for line in lines:
        with suppress(ValueError, OSError):  # A line is not JSON, or a path is impossible.
            path = Path(string(mapping(orjson.loads(line)).get("transcript_path")))
            if path.is_absolute() and path.is_file():
                paths[path] = None
    return list(paths)
