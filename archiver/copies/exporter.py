"""Byte-exact export of agents' files from their raw copies. Each file is verified before it gets its final name."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from ...core.errors import CopyGone, InvalidInput, SourceUnreadable
from ...core.reports import Exported, ExportedFile
from ...core.runtime import Progress, replacing, silent, sync
from ..formats import is_extracted
from ..store import Source, Store
from ..store.source_table import DELETED
from .checksums import Checksums
from .raw_copy import Copy, RawArchive

_PIECE: Final = 1 << 20
_REPLACED: Final = "replaced"
"""Folder of an export for earlier versions of files that an agent rewrote. Agents do not read this folder."""

_DIFFERENT: Final = "a different file exists at this path and was not changed"


class Exporter:
    """Exporter of archived files, which finds them by name and writes their original bytes."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def find(self, session_or_path: str) -> list[Source]:
        """Return the sources that a text identifies: an archive path, the path of an agent's file, or a session ID.

        Raises `InvalidInput` if no source matches.
        """
        table = self._store.sources
        archived = table.by_archived(self._raw.archive_path(session_or_path))
        if archived is not None:
            return [archived]
        current = table.by_path().get(resolved(session_or_path))
        sources = [current] if current is not None else table.of_session(encodable(session_or_path))
        sources = [source for source in sources if source.coverage.keys() != {DELETED}]
        if not sources:
            raise InvalidInput(
                f"No archived file or session: {session_or_path}",
                hint="Give a path printed by `palaver read`, the original path of the file, or a session ID. To export"
                " everything: palaver export --all FOLDER",
            )
        return sources

    def write(self, source: Source, target: BinaryIO) -> ExportedFile:
        """Write the original bytes of a source. Raises `CopyDamaged` if they do not match their checksums."""
        if DELETED in source.coverage:
            hint = "Run `palaver read` to see the remaining lines."
            raise SourceUnreadable(self._raw.root / source.archived, "some of its lines were deleted", hint=hint)
        digest, size, path = hashlib.sha256(), 0, self._raw.root / source.archived
        try:
            copy = self._raw.open_raw(source.archived)
        except FileNotFoundError:
            raise CopyGone(path) from None
        with copy as file:
            unverified = iter(lambda: file.read(_PIECE), b"")
            for piece in Checksums(source.sums).verified(file, path) if source.sums else unverified:
                target.write(piece)
                digest.update(piece)
                size += len(piece)
        return ExportedFile(source.archived, Path(), size, digest.hexdigest())

    def warning(self, source: Source) -> str:
        """Return a description of damage that leaves the content of a copy readable.

        The result is empty for an intact copy.
        """
        return Copy(self._raw.root, source.archived).format_damage()

    def export(self, sources: Sequence[Source], folder: Path, progress: Progress = silent) -> Exported:
        """Write the files of sources to a folder: one subfolder per agent, with the original paths below it.

        An existing file is compared and never replaced. Sources that cannot be exported are reported as problems. A
        source that was extracted from a transcript is exported only if all sources were extracted.
        Raises `InvalidInput` if the folder is inside the archive or cannot be created.
        """
        return self._export_each(sources, folder, self._export, progress)

    def export_pages(
        self, sources: Sequence[Source], folder: Path, page: Callable[[Source], str], progress: Progress = silent
    ) -> Exported:
        """Write a page about each source to a folder, as a Markdown file in the place of the original.

        See `export`. Sources whose lines were all deleted are skipped.
        """

        def export_page(source: Source, target: Path, result: Exported) -> None:
            text, target = page(source).encode(errors="replace"), target.with_name(f"{target.name}.md")
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                if target.read_bytes() != text:
                    raise SourceUnreadable(target, _DIFFERENT)
                result.present += 1
            else:
                with replacing(target) as file:
                    file.write(text)
            digest = hashlib.sha256(text).hexdigest()
            result.files.append(ExportedFile(source.archived, target, len(text), digest))

        left = [source for source in sources if source.coverage.keys() != {DELETED}]
        return self._export_each(left, folder, export_page, progress)

    def _export_each(
        self,
        sources: Sequence[Source],
        folder: Path,
        export: Callable[[Source, Path, Exported], None],
        progress: Progress,
    ) -> Exported:
        if folder.resolve().is_relative_to(self._raw.root.resolve()):
            raise InvalidInput(f"{folder} is inside the archive", hint="Export to another folder.")
        _create(folder)
        result = Exported(folder)
        sources = [source for source in sources if not is_extracted(source.path)] or sources
        for done, (path, source) in enumerate(self._target_paths(sources)):
            progress(done, len(sources))
            try:
                export(source, folder / path, result)
            except SourceUnreadable as problem:
                result.problems.append(problem)
            except OSError as error:
                failed = Path(error.filename or folder / path)
                result.problems.append(SourceUnreadable(failed, error.strerror or str(error)))
        progress(len(sources), len(sources))
        return result

    def _export(self, source: Source, target: Path, result: Exported) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".palaver-")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                written = self.write(source, file)
                sync(file)
            if target.exists():
                if _digest(target) != written.sha256:
                    raise SourceUnreadable(target, _DIFFERENT)
                result.present += 1
            elif _digest(temporary) != written.sha256:
                raise SourceUnreadable(
                    target, "the written file differs from the archived content", hint="Check the disk."
                )
            else:
                os.utime(temporary, ns=(source.mtime, source.mtime))
                temporary.replace(target)
            if warning := self.warning(source):
                path = self._raw.root / source.archived
                result.warnings.append(SourceUnreadable(path, warning, hint="Run `palaver fsck --repair`."))
            result.unverified += not source.sums
            result.files.append(ExportedFile(written.archived, target, written.size, written.sha256))
        finally:
            temporary.unlink(missing_ok=True)

    def _target_paths(self, sources: Iterable[Source]) -> list[tuple[PurePosixPath, Source]]:
        """Return a distinct target path for each source."""
        current = {source.id for source in self._store.sources.by_path().values()}
        exported: dict[PurePosixPath, Source] = {}
        for source in sources:
            archived = PurePosixPath(source.archived)
            path = _original_path(source, archived) if source.id in current else _REPLACED / archived
            exported[archived if path in exported else path] = source
        return list(exported.items())


def _original_path(source: Source, archived: PurePosixPath) -> PurePosixPath:
    """Return the path of a source in an export: `<agent>/<original path below the agent's folder>`.

    For a conversation from a container, return its archive path.
    """
    agent, *below = archived.parts
    parts = source.path.parts[-len(below) :]
    if not source.head or PurePosixPath(parts[-1]).suffix != archived.suffix:
        return archived
    return PurePosixPath(agent, *parts)


def _create(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file has this name" if isinstance(error, FileExistsError) else error.strerror
        hint = "Export to a folder that you can write to."
        raise InvalidInput(f"Cannot create {folder}: {reason}", hint=hint) from None


def encodable(typed: str) -> str:
    """Replace each character that UTF-8 cannot encode with `?`. Invalid bytes in file names become such characters."""
    return typed.encode("utf-8", "replace").decode()


def resolved(path: str) -> Path:
    """Return a path with `~` expanded and links resolved. Return the path unchanged if that fails."""
    try:
        return Path(path).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
