"""The three layers over one home: search, observations by id, raw lines by path."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from ..archiver.raw import RawArchive
from ..archiver.store import Store
from ..core import ids
from ..core.disclosure import IDS_MAX, Detail, Query, Results, Transcript
from ..core.errors import TooManyIds, UnknownIds
from ..core.home import Home
from .details import Details
from .embedder import DEFAULT_MODEL, load
from .engine import Engine
from .generation import Generations
from .hits import Hits
from .passages import Passages


class Layers:
    """What an agent or a person asks. Opens the archive; raises `StoreMissing` where there is none."""

    def __init__(self, home: Home, model: str | None = None) -> None:
        """`model` embeds queries where no index was published yet; otherwise the one that made its vectors does."""
        with ExitStack() as opened:
            self._store = opened.enter_context(Store.open(home.database))
            self._engine = Engine(self._store, Generations(home.index), load(model or DEFAULT_MODEL))
            self._hits = Hits(self._store, self._engine)
            self._details = Details(self._store)
            self._passages = Passages(self._store, RawArchive(home.archive))
            self._close = opened.pop_all().close

    def search(self, query: Query) -> Results:
        """Layer 1: what matches, one compact hit per event."""
        return self._hits.search(query)

    def get_observations(self, wanted: Sequence[str]) -> tuple[Detail, ...]:
        """Layer 2: everything known about these hits, in the order asked; raises `TooManyIds` or `UnknownIds`."""
        if not 1 <= len(wanted) <= IDS_MAX:
            raise TooManyIds(len(wanted), IDS_MAX)
        keys = {public: ids.key(public) for public in wanted}
        found = self._details.load([key for key in keys.values() if key is not None])
        if unknown := [public for public in keys if public not in {detail.id for detail in found}]:
            raise UnknownIds(unknown)
        return tuple(found)

    def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Transcript:
        """Layer 3: the conversation on these lines; raises `PathOutsideArchive` or `InvalidLineRange`."""
        return self._passages.read(path, start_line, end_line)

    def read_raw(self, path: str, start_line: int = 1, end_line: int | None = None) -> Iterator[bytes]:
        """The archived lines themselves, as the agent wrote them."""
        return self._passages.raw(path, start_line, end_line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
