"""Reader of the token usage in raw copies, which fills the table `usage`.

Each raw copy is read once. Afterwards only new lines are read, unless the agent rewrites whole files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from ..archiver.copies.raw_copy import RawArchive
from ..archiver.deletion.suppression import SuppressionList
from ..archiver.formats.recorded_usage import UsageContext, may_have_usage, usage_records
from ..archiver.lines import DOCUMENT, Line, split
from ..archiver.store import Source, Store
from ..archiver.store.usage_table import UsagePosition
from ..core.errors import PalaverError
from ..core.home import Home
from ..core.runtime import Progress, never, silent
from ..core.tokens import UsageRecord

_BATCH = 20
"""Number of sources per transaction."""
_LINES = 200
"""Number of lines that are compared with the deleted lines at once."""


def read_usage(
    home: Home,
    store: Store,
    progress: Progress = silent,
    should_stop: Callable[[], bool] = never,
    sessions: Sequence[int] | None = None,
) -> int:
    """Store the usage of all sources that changed, or of those of some sessions. Return how many are not read yet.

    A source remains unread in read-only mode, if its copy is missing or damaged, or if `should_stop` returns true.
    """
    unread = store.usage.unread(sessions)
    if not unread or store.is_read_only:
        return len(unread)
    copies, done = _RawUsage(home, store), 0
    for start in range(0, len(unread), _BATCH):
        if should_stop():
            break
        progress(start, len(unread))
        usage = [copies.read(position) for position in unread[start : start + _BATCH]]
        with store.transaction():
            for source in filter(None, usage):
                store.usage.record(source.position, source.records, replace=source.is_whole)
                done += 1
    progress(len(unread), len(unread))
    return len(unread) - done


class _SourceUsage(Struct):
    """Usage in the new lines of a source, and the position after them. `is_whole` is true if all lines were read."""

    position: UsagePosition
    is_whole: bool
    records: list[UsageRecord]


class _RawUsage:
    """Usage in the raw copies of one archive, without the lines that the user deleted."""

    def __init__(self, home: Home, store: Store) -> None:
        self._store, self._raw, self._deleted = store, RawArchive(home.archive), SuppressionList(store, home.key())

    def read(self, position: UsagePosition) -> _SourceUsage | None:
        """Return the usage in the lines from a position on, or None if the copy cannot be read."""
        source, session = self._store.sources.load(position.source), self._store.sources.native_id(position.source)
        if source.is_contained or source.path.suffix == DOCUMENT:
            position = position._replace(byte=0, line=1, context=UsageContext())
        is_whole = not position.byte
        context = UsageContext(position.context.model, position.context.thread or session)
        end = [position.byte, position.line]
        try:
            with self._raw.open(source.archived) as file:
                lines = _up_to_end(split(file, start_byte=position.byte, start_line=position.line), end)
                kept = ((line.number, line.data) for line in self._undeleted(source, lines))
                records = [*usage_records(source.agent, session, kept, context)]
        except (OSError, PalaverError):
            return None
        return _SourceUsage(position._replace(byte=end[0], line=end[1], context=context), is_whole, records)

    def _undeleted(self, source: Source, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines that can have usage, without deleted ones."""
        candidates = (line for line in lines if may_have_usage(source.agent, line.data))
        if not self._deleted:
            yield from candidates
        while batch := list(islice(candidates, _LINES)):
            deleted = self._deleted.lines(source.path, batch)
            yield from (line for line in batch if line.number not in deleted)


def _up_to_end(lines: Iterable[Line], end: list[int]) -> Iterator[Line]:
    """Yield the lines, and set `end` to the byte and the line after the last complete one."""
    for line in lines:
        if line.complete:
            end[:] = line.end, line.last + 1
        yield line
