"""Search for transcripts on this machine."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from msgspec import Struct

from ...core.errors import SourceUnreadable
from ...core.home import home_of
from ...core.reports import Unsearched
from .. import lines
from ..formats import ContainerFormat, TranscriptFormat, record_reader
from ..formats.registry import all_formats, container_formats, recognise
from ..lines import DOCUMENT, SUFFIX, opened

_LINES = (".jsonl", f".jsonl{SUFFIX}")
_SUFFIXES = (*_LINES, DOCUMENT)
_CONTAINER_SUFFIXES = (".db", ".vscdb", ".sqlite", ".sqlite3", ".zip", ".history.md")
_RENAMED = ".jsonl."
"""Part of the name of a transcript that an agent renamed, such as `1a2b.jsonl.reset.2026-03-01`."""


class Transcript(Struct, frozen=True):
    """Transcript file, or a file of unknown format that may be a transcript.

    `found` is the path of the file below `root`, and `path` is the same path with all links resolved. If `path` equals
    `root`, the instance is not a file: it represents a folder that this user cannot read.
    """

    path: Path
    found: Path
    root: Path
    format: TranscriptFormat | None = None
    container_format: ContainerFormat | None = None
    """Format of the container, if the file is a container of transcripts."""

    def recognise(self) -> TranscriptFormat | None:
        """Return the format, or None if the file is not from a known agent. Raises `OSError`."""
        if self.format is not None:
            return self.format
        recognised = _recognised(self.path)
        return recognised if recognised is not None and recognised.may_be_transcript(self.found, self.root) else None

    def archived(self, transcript_format: TranscriptFormat) -> str:
        """Return the preferred archive path of the raw copy, such as `codex/2026/07/01/<name>.jsonl`."""
        name = transcript_format.archive_name(self.found.absolute(), self.root.absolute())
        return f"{transcript_format.agent}/{name}"


def of_this_user(skipped: Unsearched | None = None) -> list[Transcript]:
    """Return every transcript of the known agents in this user's folders.

    The result also contains an entry for each unreadable folder, so that an ingest run reports it. `skipped` collects
    the paths that are not searched.
    """
    files = (_of_format(transcript_format, skipped) for transcript_format in all_formats())
    return [*chain.from_iterable((*files, *map(_of_container_format, container_formats())))]


def roots(transcript_format: TranscriptFormat) -> list[Path]:
    """Return the folders in which an agent stores transcripts, or an empty list if this user cannot read them."""
    try:
        return transcript_format.roots()
    except PermissionError:
        return []


def folders(transcript_format: TranscriptFormat) -> list[Path]:
    """Return the existing folders with this user's transcripts or containers of an agent."""
    containers = list[Path]()
    if isinstance(transcript_format, ContainerFormat):
        with suppress(PermissionError):
            containers.extend(transcript_format.containers())
    return [*roots(transcript_format), *dict.fromkeys(path.parent for path in containers)]


def encrypted_counts() -> dict[str, int]:
    """Return the number of this user's files that only their agent can decrypt, by agent."""
    counts = dict[str, int]()
    for transcript_format in all_formats():
        with suppress(PermissionError):
            if files := transcript_format.encrypted():
                counts[transcript_format.agent] = len(files)
    return counts


def _of_format(transcript_format: TranscriptFormat, skipped: Unsearched | None) -> Iterator[Transcript]:
    try:
        for root in transcript_format.roots():
            if record_reader.is_unreadable(root):
                yield _unreadable_folder(root)
            else:
                yield from (
                    Transcript(_real(path), path, root, transcript_format)
                    for path in transcript_format.transcripts(root, skipped)
                )
    except PermissionError as error:
        yield _unreadable_folder(Path(error.filename))


def _of_container_format(container_format: ContainerFormat) -> Iterator[Transcript]:
    try:
        yield from (_container(path, container_format) for path in container_format.containers())
    except PermissionError as error:
        yield _unreadable_folder(Path(error.filename))


def _unreadable_folder(path: Path) -> Transcript:
    """Return an entry for the topmost folder above `path` that this user cannot read, or else for `path` itself."""
    above = reversed(path.parents)
    closed = next(
        (folder for folder in above if record_reader.is_unreadable(folder) and not os.access(folder, os.X_OK)), path
    )
    return Transcript(closed, closed, closed)


def within(folder: Path) -> Iterator[Transcript]:
    """Yield this user's transcripts in a folder, given as a resolved path below a transcript folder of an agent."""
    for transcript_format in all_formats():
        for root in roots(transcript_format):
            real = root.resolve()
            if folder != real and folder.is_relative_to(real) and folder.is_dir():
                for file in transcript_format.transcripts(root / folder.relative_to(real)):
                    if transcript_format.may_be_transcript(file, root):
                        yield Transcript(_real(file), file, root, transcript_format)


def in_paths(paths: Sequence[Path], skipped: Unsearched | None = None) -> list[Transcript]:
    """Return the transcripts and containers at these paths. A path can be a file or a folder.

    Files in a folder are included if they may be transcripts. `skipped` collects the paths that are not searched.

    Raises:
        SourceUnreadable: A path does not exist, cannot be read, contains no transcript of a known agent, or is in a
            Palaver home.
    """
    transcripts: list[Transcript] = []
    for path in paths:
        if (home := home_of(_real(path))) is not None:
            hint = "Palaver does not archive its own data. Give a folder with transcripts."
            raise SourceUnreadable(path, f"it belongs to the Palaver home {home}", hint=hint)
        inside = list(_in_folder(path, skipped)) if path.is_dir() else [_file(path)]
        if not inside:
            raise SourceUnreadable(path, "the folder contains no transcripts", hint=f"Known agents: {_agents()}.")
        transcripts += inside
    return transcripts


def _in_folder(folder: Path, skipped: Unsearched | None) -> Iterator[Transcript]:
    try:
        next(folder.iterdir(), None)
    except PermissionError:
        raise SourceUnreadable(folder, "permission denied", hint=f"Check the permissions of {folder}.") from None
    suffixes = (*_SUFFIXES, *_CONTAINER_SUFFIXES)

    def may_contain(name: str) -> bool:
        return name.lower().endswith(suffixes) or _RENAMED in name

    for path in record_reader.files(folder, may_contain, skipped=skipped):
        if (container_format := _container_format_of(path)) is not None:
            yield _container(path, container_format)
        elif (path.name.endswith(_SUFFIXES) or _RENAMED in path.name) and any(
            transcript_format.may_be_transcript(path, folder) for transcript_format in all_formats()
        ):
            yield Transcript(_real(path), path, folder)


def _container_format_of(path: Path) -> ContainerFormat | None:
    """Return the format of a container, or None if the file is not a container or cannot be read."""
    try:
        return next((known for known in container_formats() if known.is_container(path)), None)
    except OSError:
        return None


def _container(path: Path, container_format: ContainerFormat) -> Transcript:
    return Transcript(_real(path), path, path.parent, container_format, container_format)


def _file(path: Path) -> Transcript:
    if (container_format := _container_format_of(path)) is not None:
        return _container(path, container_format)
    try:
        transcript_format = _recognised(path)
    except OSError as error:
        raise SourceUnreadable(
            path, error.strerror or str(error), hint="Name a transcript or a folder of transcripts."
        ) from None
    if transcript_format is None:
        raise SourceUnreadable(
            path, "the file is not a transcript of a known agent", hint=f"Known agents: {_agents()}."
        )
    return Transcript(_real(path), path, path.parent, transcript_format)


def _real(path: Path) -> Path:
    """Return a path with its links resolved. Unlike `Path.resolve`, do not fail on a cycle of links."""
    return Path(os.path.realpath(path))


def _recognised(path: Path) -> TranscriptFormat | None:
    with opened(path) as file:
        return recognise(lines.head(file), path.name)


def _agents() -> str:
    return ", ".join(known.agent for known in all_formats())
