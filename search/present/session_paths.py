"""TranscriptPaths: the files that a person means by a path, or by the id of a session or its beginning."""

from contextlib import suppress

from ...archiver.copies.exporter import Exporter, encodable
from ...archiver.copies.raw import RawArchive
from ...archiver.store import Source, Store
from ...core.errors import InvalidInput, PathOutsideArchive

_SHORTEST = 6
"""Characters of a session's id that name it, when no other begins so."""


class TranscriptPaths:
    """Finds archived files by what people call them."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._exporter = store, Exporter(store, raw)

    def sources(self, wanted: str) -> list[Source]:
        """All files of this name, a session's sub-agents' included; raises `InvalidInput` where none or several fit."""
        try:
            return self._exporter.find(wanted)
        except InvalidInput:
            session = self._session(wanted)
            if not session:
                raise
        return self._exporter.find(session)

    def path(self, wanted: str) -> str:
        """The archive path of the one file to read: a session's own, as it was last written.

        Raises `PathOutsideArchive` where nothing has this name, and `InvalidInput` where several sessions begin so.
        """
        with suppress(InvalidInput):
            return self._own(self._exporter.find(wanted), wanted)
        session = self._session(wanted)
        with suppress(InvalidInput):
            return self._own(self._exporter.find(session), session)
        raise PathOutsideArchive(wanted)

    def _own(self, found: list[Source], name: str) -> str:
        sessions = {source.session: self._store.sessions.load(source.session) for source in found if source.session}
        own = [each for each in found if each.session in sessions and sessions[each.session].native_id == name]
        return (own or found)[-1].archived

    def _session(self, start: str) -> str:
        """The id of the one session that begins so; empty where none does. Raises `InvalidInput` where several do."""
        begun = self._store.sessions.native_ids(encodable(start)) if len(start) >= _SHORTEST else []
        if len(begun) > 1:
            raise InvalidInput(f"{len(begun):,} sessions begin with {start}", hint="Give more characters of the id.")
        return begun[0] if begun else ""
