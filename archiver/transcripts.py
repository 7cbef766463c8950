"""Transcripts: where this machine keeps them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import SourceUnreadable
from .compression import opened
from .formats import FORMATS, Format, recognise
from .lines import HEAD_BYTES

DEMO = Path(__file__).with_name("demo")
"""A small made-up history, for those who have none yet."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript on disk: its format, its path and the name its copy should have."""

    format: Format
    path: Path
    archived: str


def of_this_user() -> list[Transcript]:
    """Every transcript in the folders where the known agents keep theirs."""
    return [
        _transcript(known, path, root)
        for known in FORMATS
        for root in known.roots()
        for path in known.transcripts(root)
    ]


def in_paths(paths: Sequence[Path]) -> list[Transcript]:
    """The transcripts among these files and in these folders.

    Raises `SourceUnreadable` for a path that does not exist, may not be read, or holds no transcript of a known agent.
    """
    found: list[Transcript] = []
    for path in paths:
        inside = list(_in_folder(path)) if path.is_dir() else [_file(path)]
        if not inside:
            raise SourceUnreadable(path, "no transcripts here", hint=f"Known agents: {_agents()}.")
        found += inside
    return found


def _in_folder(folder: Path) -> Iterator[Transcript]:
    try:
        next(folder.iterdir(), None)
    except PermissionError:
        raise SourceUnreadable(folder, "permission denied", hint=f"Check the rights of {folder}.") from None
    # What no format recognises is taken up by the first that would look for it there.
    owners: dict[Path, Format] = {}
    for known in FORMATS:
        for path in known.transcripts(folder):
            if path not in owners:
                owners[path] = _format_of(path) or known
            if owners[path] is known:
                yield _transcript(known, path, folder)


def _file(path: Path) -> Transcript:
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise SourceUnreadable(
            path, error.strerror or str(error), hint="Name a transcript, or a folder of them."
        ) from None
    known = recognise(head)
    if known is None:
        raise SourceUnreadable(path, "not a transcript of a known agent", hint=f"Known agents: {_agents()}.")
    return _transcript(known, path, path.parent)


def _format_of(path: Path) -> Format | None:
    try:
        with opened(path) as file:
            return recognise(file.read(HEAD_BYTES))
    except OSError:
        return None


def _transcript(known: Format, path: Path, root: Path) -> Transcript:
    archived = known.archive_name(path.absolute(), root.absolute())
    return Transcript(known, path.resolve(), f"{known.agent}/{archived}")


def _agents() -> str:
    return ", ".join(known.agent for known in FORMATS)
