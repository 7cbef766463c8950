"""Context of the health checks, which opens each resource once for all checks."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from ...archiver.ingest.transcripts import Transcript
from ...archiver.store import Store
from ...core.checkup import HealthProblem
from ...core.config import Config
from ...core.errors import PalaverError
from ...core.home import Home
from ...core.report import Status, Unsearched
from ...search.index.generation import Generations
from .archive_status import state_of

Findings = Iterable[tuple[str, str] | HealthProblem]
"""Result of a check: facts, each with its label, and problems."""
ARCHIVE: Final = "Run `palaver archive`."


class StoreUnreadable(Exception):
    """Error: a check is skipped because the store is unreadable. The database check reports the reason."""


class HealthContext(Struct, frozen=True, dict=True):
    """Home to check, and the resources that the checks share.

    `transcripts` finds the agents' files. `off` returns the reason why no language model is used, or an empty text.
    """

    home: Home
    version: str
    transcripts: Callable[[Unsearched], Sequence[Transcript]]
    off: Callable[[Config], str]

    @cached_property
    def config(self) -> Config:
        """Settings of the home. Raises `ConfigInvalid`."""
        return Config.read(self.home.config)

    @cached_property
    def readable_store(self) -> Store | None:
        """Store, opened read-only. The value is None if the store cannot be read."""
        try:
            store = Store.open_read_only(self.home.database, read_only=self.home.read_only)
            seen, known = store.schema
            return store if seen == known and store.integrity.is_readable() else None
        except PalaverError:
            return None

    @property
    def store(self) -> Store:
        """Store, opened read-only. Raises `StoreUnreadable`."""
        if self.readable_store is None:
            raise StoreUnreadable
        return self.readable_store

    @cached_property
    def status(self) -> Status:
        """Status of the archive. Raises `StoreUnreadable`."""
        return state_of(self.home, self.store, Generations(self.home.index), self.model)

    @property
    def key(self) -> bytes:
        """Key of the archive, or empty bytes if it is missing."""
        try:
            return self.home.key_file.read_bytes()
        except FileNotFoundError:
            return b""

    @property
    def model(self) -> str | None:
        """Embedding model in the settings. The value is None for the packaged model, or if the settings are invalid."""
        try:
            return self.config.model
        except PalaverError:
            return None
