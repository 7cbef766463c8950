"""File states: hashes of the files of an exchange, taken if the exchange is observed soon after it ended.

Later, the same files are hashed again to detect observations that may be outdated. A file without a hash from the time
of its exchange is never reported as changed. Commits cannot replace these hashes, because an agent may have seen
uncommitted files. Modification times cannot replace them either, because a checkout changes these times.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ...archiver.files.content_hash import content_hash
from ...archiver.store.file_state_table import FileState
from ...core.conversation import Exchange, Milliseconds, Session
from ..rules.touched_files import relative_path

_LIVE: Final = 5 * 60_000
"""Maximum delay in milliseconds between the end of an exchange and its observation. It is usually a few seconds."""
_FILES_MAX: Final = 24
"""Maximum files of an exchange, so that hashing takes a few milliseconds."""


def is_live(exchange: Exchange, at: Milliseconds) -> bool:
    """Return whether an exchange ended so recently that its files still have the content that the agent saw."""
    return exchange.ended is not None and 0 <= at - exchange.ended <= _LIVE


def file_states(exchange: Exchange, session: Session, key: bytes) -> list[FileState]:
    """Return the states of the project files that an exchange modified or read, the modified files first."""
    return list(islice(_states(exchange, session, key), _FILES_MAX))


def _states(exchange: Exchange, session: Session, key: bytes) -> Iterator[FileState]:
    roots = tuple(root for root in (session.cwd, exchange.cwd) if root)
    folder = exchange.cwd or session.cwd
    project = os.path.realpath(session.cwd or folder)
    if not Path(folder).is_absolute():
        return
    for path in dict.fromkeys((*exchange.writes, *exchange.reads)):
        file = os.path.realpath(Path(folder, path))
        if Path(file).is_relative_to(project) and (found := content_hash(file, key)):
            yield FileState(relative_path(path, roots), file, found)
