"""Originals: the agents' files, given back byte for byte from their copies, and checked before they get their names."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from ...core.durability import sync
from ...core.errors import CopyDamaged, CopyGone, InvalidInput, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Exported, Original
from ..store import Source, Store
from ..store.source_table import DELETED
from .checksums import Checksums
from .raw import RawArchive
from .seekable import Seekable

_PIECE: Final = 1 << 20
_REPLACED: Final = "replaced"
"""The folder for what a file said before it was rewritten, which an agent must not find beside the file."""


class Originals:
    """Finds archived files by what people call them, and writes them."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def find(self, wanted: str) -> list[Source]:
        """The sources with this path in the archive or of the agent, or of the session with this id.

        Raises `InvalidInput` when there is none.
        """
        sources = self._store.sources
        archived = sources.by_archived(self._raw.named(wanted))
        if archived is not None:
            return [archived]
        current = sources.by_path().get(_resolved(wanted))
        found = [current] if current is not None else sources.of_session(text_of(wanted))
        found = [source for source in found if source.coverage.keys() != {DELETED}]
        if not found:
            raise InvalidInput(
                f"Nothing archived is called {wanted}",
                hint="Give a path that `palaver show` printed, the path that the agent had, or the id of a session.",
            )
        return found

    def write(self, source: Source, target: BinaryIO) -> Original:
        """Write a source's bytes; raises `CopyDamaged` when they are not those that were archived."""
        if DELETED in source.coverage:
            hint = "`palaver read` shows the rest of it."
            raise SourceUnreadable(self._raw.root / source.archived, "some of it was forgotten", hint=hint)
        digest = hashlib.sha256()
        size = 0
        with self._opened(source) as file:
            for piece in self._pieces(source, file):
                target.write(piece)
                digest.update(piece)
                size += len(piece)
        return Original(source.archived, Path(), size, digest.hexdigest())

    def _pieces(self, source: Source, file: BinaryIO) -> Iterator[bytes]:
        """Yield the verified bytes of a copy. Of one without checksums, only its first and last 4 KiB are verified."""
        if source.sums:
            yield from Checksums(source.sums).verified(file, self._raw.root / source.archived)
            return
        while piece := file.read(_PIECE):
            yield piece
        if not self._raw.is_intact(source):
            raise CopyDamaged(self._raw.root / source.archived, "its content is not what was archived")

    def warning(self, source: Source) -> str:
        """Return the damage to a copy's file that leaves all of its content readable; empty for none."""
        with self._opened(source) as file:
            return file.form_damage() if isinstance(file, Seekable) else ""

    def _opened(self, source: Source) -> BinaryIO:
        try:
            return self._raw.original(source.archived)
        except FileNotFoundError:
            raise CopyGone(self._raw.root / source.archived) from None

    def export(self, sources: Sequence[Source], folder: Path, progress: Progress = silent) -> Exported:
        """Write sources below a folder, each where it lay below its agent's own folder.

        A file that is there already is compared and never replaced. What cannot be given back is reported; the others
        go on. Raises `InvalidInput` for a folder in the archive, and for one that cannot be made.
        """
        if folder.resolve().is_relative_to(self._raw.root.resolve()):
            raise InvalidInput(f"{folder} lies in the archive", hint="Export to a folder of your own.")
        _make(folder)
        result = Exported(folder)
        for done, (place, source) in enumerate(self._places(sources)):
            progress(done, len(sources))
            try:
                self._give(source, folder / place, result)
            except SourceUnreadable as problem:
                result.problems.append(problem)
            except OSError as error:
                path = Path(error.filename or folder / place)
                result.problems.append(SourceUnreadable(path, error.strerror or str(error)))
        progress(len(sources), len(sources))
        return result

    def _give(self, source: Source, target: Path, result: Exported) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".palaver-")
        beside = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                given = self.write(source, file)
                sync(file)
            if target.exists():
                if _digest(target) != given.sha256:
                    raise SourceUnreadable(target, "another file is there, and was left alone")
                result.present += 1
            elif _digest(beside) != given.sha256:
                raise SourceUnreadable(target, "it reads back differently", hint="Check the disk.")
            else:
                os.utime(beside, ns=(source.mtime, source.mtime))
                beside.replace(target)
            if warning := self.warning(source):
                place = self._raw.root / source.archived
                result.warnings.append(SourceUnreadable(place, warning, hint="Run `palaver fsck --repair`."))
            result.uncompared += not source.compared
            result.files.append(Original(given.archived, target, given.size, given.sha256))
        finally:
            beside.unlink(missing_ok=True)

    def _places(self, sources: Iterable[Source]) -> list[tuple[PurePosixPath, Source]]:
        """Where each source goes, no two to the same place."""
        current = {source.id for source in self._store.sources.by_path().values()}
        places: dict[PurePosixPath, Source] = {}
        for source in sources:
            archived = PurePosixPath(source.archived)
            place = _own_place(source, archived) if source.id in current else _REPLACED / archived
            places[archived if place in places else place] = source
        return list(places.items())


def _own_place(source: Source, archived: PurePosixPath) -> PurePosixPath:
    """The agent's name and the end of the path that the file had; for a container's conversation, its copy's place."""
    agent, *below = archived.parts
    parts = source.path.parts[-len(below) :]
    if not source.head or PurePosixPath(parts[-1]).suffix != archived.suffix:
        return archived
    return PurePosixPath(agent, *parts)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror
        hint = "Export to a folder that you may write to."
        raise InvalidInput(f"{folder} cannot be made: {reason}", hint=hint) from None


def text_of(typed: str) -> str:
    """What was typed as text that a database can be asked for: a name of a file need not be any."""
    return typed.encode("utf-8", "replace").decode()


def _resolved(wanted: str) -> Path:
    """The path without links, as sources have it; as it is where that cannot be told."""
    try:
        return Path(wanted).resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(wanted)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
