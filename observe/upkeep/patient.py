"""The patient: what the doctor looks at, opened once for all parts, and the words in which each part answers."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from ...archiver.ingest.transcripts import Transcript
from ...archiver.store import Store
from ...core.checkup import Finding
from ...core.config import Config
from ...core.errors import PalaverError
from ...core.home import Home
from ...core.report import Status, Unsearched
from ...search.index.generation import Generations
from .status import state_of

ARCHIVE: Final = "Run `palaver archive`."


class Fact(NamedTuple):
    """How a part is, in a few words."""

    name: str
    told: str


class Patient(Struct, frozen=True, dict=True):
    """Subject of a diagnosis. `transcripts` finds the agents' files, `off` is why no language model may be asked."""

    home: Home
    version: str
    transcripts: Callable[[Unsearched], Sequence[Transcript]]
    off: Callable[[Config], str]

    @cached_property
    def config(self) -> Config:
        """The settings; raises `ConfigInvalid`."""
        return Config.read(self.home.config)

    @cached_property
    def store(self) -> Store | None:
        """The store, to be read only; None where there is none that can be read, which `holdings.database` tells."""
        try:
            store = Store.open_read_only(self.home.database)
            seen, known = store.schema
            return store if seen == known and store.integrity.is_readable() else None
        except PalaverError:
            return None

    @cached_property
    def status(self) -> Status | None:
        """The state of the archive, where it can be read."""
        if self.store is None:
            return None
        return state_of(self.home, self.store, Generations(self.home.index), self.model)

    @property
    def key(self) -> bytes:
        """The key of the archive, which is not made here: no bytes where it is gone."""
        try:
            return self.home.key_file.read_bytes()
        except FileNotFoundError:
            return b""

    @property
    def model(self) -> str | None:
        """The model that the settings name; None, which is the packaged one, where they name none that can be read."""
        try:
            return self.config.model
        except PalaverError:
            return None


Answer = Iterable[Fact | Finding]
"""What a part says: how it is, and what is not as it should be."""
