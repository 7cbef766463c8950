"""Restoring of sessions that an agent deleted: their files are written again where the agent stored them.

A record in the home lists the restored files, so that they can be removed again.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ...core.errors import InvalidInput, SessionNotRestorable, SourceUnreadable
from ...core.home import Home
from ...core.runtime import replacing, sync, sync_path
from ..formats.registry import by_agent
from ..formats.resume_commands import COMMANDS
from ..lines import SUFFIX
from ..store import Source, Store
from ..store.source_table import DELETED
from .exporter import Exporter
from .raw_copy import Copy, RawArchive, matches
from .result_files import ResultFiles


class RestoredFile(Struct, frozen=True):
    """File of a session that was restored: the session, the archive path of the copy, and the state of the file.

    `result` is the name of a result file of the transcript with this copy, or empty for the transcript itself.
    """

    agent: str
    session_id: str
    archived: str
    size: int
    sha256: str
    result: str = ""


_RECORD: Final = msgspec.json.Decoder(list[RestoredFile])


class SessionRestorer:
    """Restorer of one session of a store, with the files of its sub-agents."""

    def __init__(self, home: Home, store: Store, number: int) -> None:
        """Create the restorer of the session with the store's ID `number`."""
        self._home, self._store, self._raw = home, store, RawArchive(home.archive)
        self.number, self.session = number, store.sessions.load(number)

    def source(self) -> Source:
        """Return the source of the session whose file exists, or else its most complete source.

        Raises:
            InvalidInput: The session has no exchange.
        """
        own = [source for source in self._sources() if source.session == self.number]
        source = next((source for source in own if _exists(source)), None) or self._store.sources.main(self.number)
        if source is None:
            raise InvalidInput("The session has no conversation", hint="Run `palaver sessions` to list sessions.")
        return source

    def missing(self) -> list[Source]:
        """Return the sources whose files are missing, or an empty list if the agent still has the session.

        A session of a database is only missing if the whole database is.
        """
        source = self.source()
        if source.is_contained:
            return [] if source.path.parent.exists() else [source]
        if _exists(source):
            return []
        return [source for source in self._sources() if not source.is_contained and not _exists(source)]

    def missing_results(self) -> list[tuple[Source, str]]:
        """Return the result files of the missing sources that the agent does not have: their source and name."""
        by_path = {
            self._results(source).folder / name: (source, name)
            for source in self.missing()
            if not source.is_contained
            for name in self._results(source).missing()
        }
        return list(by_path.values())

    def check(self) -> None:
        """Raise `SessionNotRestorable` unless the missing files can be restored. Nothing is written."""
        command = COMMANDS.get(self.session.agent)
        if command is None or not command.one_file:
            raise SessionNotRestorable(f"{self.session.agent} does not keep each session in one file")
        missing = self.missing()
        if any(DELETED in source.coverage for source in missing):
            raise SessionNotRestorable("some of its lines were deleted from the archive")
        for source in missing:
            if not self._is_in_own_folder(source.path):
                raise SessionNotRestorable(f"{source.path} is not in a session folder of {source.agent}")
        for folder in {self._results(source).folder for source, _ in self.missing_results()}:
            if Path(os.path.realpath(folder)) != folder:
                raise SessionNotRestorable(f"{folder} contains a link")

    def restore(self) -> list[RestoredFile]:
        """Write the missing files byte for byte, with the current time as their modification time.

        Existing files are never changed. If a file cannot be written, no file is restored.

        Raises:
            SessionNotRestorable: See `check`. It is also raised if a copy differs from the agent's file, or if
                the file system of the agent's folder has no hard links.
            SourceUnreadable: A copy is damaged, or a file has appeared at the path of a missing file.
            StoreReadOnly: The home is read-only, so the restored files could not be recorded.
        """
        self._home.check_writable()
        self.check()
        exporter, sources, results = Exporter(self._store, self._raw), self.missing(), self.missing_results()
        with ExitStack() as undo:
            restored: list[RestoredFile] = []
            for source in sources:
                restored.append(self._write(exporter, source))
                undo.callback(source.path.unlink, missing_ok=True)
            for source, name in results:
                restored.append(self._write_result(source, name))
                undo.callback(self._results(source).folder.joinpath(name).unlink, missing_ok=True)
            self._record([*self._recorded(), *restored])
            undo.pop_all()
        return restored

    def undo(self) -> list[Path]:
        """Remove the restored files of the session, and return their paths.

        Raises:
            InvalidInput: No file of the session was restored, or one of them changed. No file was removed.
        """
        self._home.check_writable()
        recorded, paths = list(self._recorded()), list[Path]()
        own = [file for file in recorded if (file.agent, file.session_id) == self._name]
        for file in own:
            source = self._store.sources.by_archived(file.archived)
            if source is None:
                continue
            path = self._results(source).folder / file.result if file.result else source.path
            if not path.exists():
                continue
            if _state(path) != (file.size, file.sha256):
                hint = (
                    "The session was continued, so no file was removed. Delete it in the agent if you do not need it."
                )
                raise InvalidInput(f"{path} has changed since it was restored", hint=hint)
            paths.append(path)
        if not paths:
            raise InvalidInput("No file of this session was restored", hint="There is nothing to undo.")
        for path in paths:
            path.unlink()
        self._record([file for file in recorded if file not in own])
        return paths

    @property
    def _name(self) -> tuple[str, str]:
        """Agent and agent's ID of the session, under which its files are recorded."""
        return self.session.agent, self.session.native_id

    def _sources(self) -> list[Source]:
        """Return the current sources of the session and of its sub-agents, directly or indirectly."""
        sources, names = dict[int, Source](), [self.session.native_id]
        for name in names:  # The loop adds the names of sub-agents.
            for source in self._store.sources.of_session(name):
                if source.id is None or source.id in sources or source.agent != self.session.agent:
                    continue
                current = self._store.sources.at(source.path)
                if current is not None and current.id == source.id:
                    sources[source.id] = source
                    names.append(self._store.sources.native_id(source.id))
        return list(sources.values())

    def _is_in_own_folder(self, path: Path) -> bool:
        """Return whether a path is a transcript path below a folder of the agent, and contains no link."""
        transcripts = by_agent(self.session.agent)
        roots = (Path(os.path.realpath(root)) for root in transcripts.roots())
        inside = (path.is_relative_to(root) and transcripts.may_be_transcript(path, root) for root in roots)
        return Path(os.path.realpath(path)) == path and any(inside)

    def _write(self, exporter: Exporter, source: Source) -> RestoredFile:
        target = source.path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".palaver-")
        try:
            with os.fdopen(descriptor, "w+b") as file:
                written = exporter.write(source, file)
                sync(file)
                if not matches(source, file):
                    raise SessionNotRestorable("its copy differs from the file that the agent wrote")
            _link(temporary, target)
        finally:
            Path(temporary).unlink()
        sync_path(target.parent)
        return RestoredFile(*self._name, source.archived, written.size, written.sha256)

    def _results(self, source: Source) -> ResultFiles:
        return ResultFiles(source.path, Copy(self._raw.root, source.archived))

    def _write_result(self, source: Source, name: str) -> RestoredFile:
        results = self._results(source)
        results.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = results.folder / name
        descriptor, temporary = tempfile.mkstemp(dir=results.folder, prefix=".palaver-")
        try:
            with os.fdopen(descriptor, "wb") as file, results.open(name) as copy:
                shutil.copyfileobj(copy, file)
                sync(file)
            _link(temporary, target)
        finally:
            Path(temporary).unlink()
        sync_path(results.folder)
        return RestoredFile(*self._name, source.archived, *_state(target), name)

    def _recorded(self) -> Iterator[RestoredFile]:
        try:
            yield from _RECORD.decode(self._home.restored.read_bytes())
        except FileNotFoundError:
            return

    def _record(self, files: list[RestoredFile]) -> None:
        with replacing(self._home.restored) as file:
            file.write(msgspec.json.encode(files))


def _link(temporary: str, target: Path) -> None:
    """Give a file its final name. Unlike a rename, a link never replaces a file."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise SourceUnreadable(target, "a file exists at this path and was not changed") from None
    except OSError as error:
        raise SessionNotRestorable(f"{target} cannot be linked: {error.strerror}") from None


def _exists(source: Source) -> bool:
    """Return whether the agent still has the file of a source. Codex compresses old files."""
    return os.path.lexists(source.path) or source.path.with_name(f"{source.path.name}{SUFFIX}").exists()


def _state(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
