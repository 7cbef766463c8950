"""Check of project names, which suggests similar names for an unknown name."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final

from ...archiver.store import Store
from ...core.errors import UnknownProject
from ...core.memory import PROJECT
from ...core.memory_filter import MemoryFilter
from ...core.project import main_worktree, root_of, working_folders
from ...core.text import nfc, similar_names
from .tokenizer import label, project_labels

_NEAREST: Final = 3
"""Maximum number of names to suggest. If at most this many names exist, all of them are suggested."""
_SIMILARITY: Final = 60
"""Minimum similarity of a suggested name, 0 to 100."""


def check_projects(store: Store, names: Sequence[str]) -> None:
    """Check that each project, given by name or folder, has a session, a memory or a document.

    Raises:
        UnknownProject: A project has none of them.
    """
    for name in names:
        if not _is_known(store, name):
            raise unknown_project(store, name)


def project_at(store: Store, folder: Path) -> str:
    """Return the project filter for the sessions of a folder, or an empty string if the folder has none.

    The filter is the full path if a session ran in the folder, or else the folder name if a project has this name.
    """
    places, whole = store.sessions.projects(), _in_main_worktree(folder.resolve())
    if any(PurePath(each).is_relative_to(whole) for _, cwd in places for each in working_folders(cwd)):
        return str(whole)
    return whole.name if whole.name in {project for project, _ in places} else ""


def _in_main_worktree(folder: Path) -> PurePath:
    """Return the same folder in the main worktree of its repository, in Unicode normalization form C."""
    root = root_of(folder)
    below = folder.relative_to(root) if folder.is_relative_to(root) else ""
    return PurePath(nfc(str(main_worktree(root) / below)))


def unknown_project(store: Store, name: str) -> UnknownProject:
    """Return the error for an unknown project, with the most similar names."""
    wanted = (PurePath(name).name or name).removeprefix(PROJECT).lower()
    known = sorted({each.removeprefix(PROJECT) for each in _names(store) if each not in {"", "global", "default"}})
    spelled = {each.lower(): each for each in known}
    containing = [each for each in spelled if wanted and (wanted in each or each in wanted)]
    similar = similar_names(wanted, spelled, least=_SIMILARITY, limit=_NEAREST)
    few = spelled if len(known) <= _NEAREST else ()
    near = list(dict.fromkeys([*similar, *sorted(containing, key=len), *few]))
    return UnknownProject(name, [spelled[each] for each in near[:_NEAREST]])


def _is_known(store: Store, name: str) -> bool:
    """Return whether a project has a session, a memory or a document.

    For a folder, memories and documents of its namespace count too.
    """
    wanted = {each for each in project_labels([name]) if each}
    if name.startswith("/") and (namespace := store.projects.of_archived(Path(name))) != "global":
        wanted.add(label(namespace))
    return any(
        each in wanted or any(each.startswith(f"{folder}/") for folder in wanted)
        for each in map(label, _places(store))
        if each
    )


def _places(store: Store) -> Iterator[str]:
    """Yield the names, namespaces and folders of all projects. Forgotten memories are ignored."""
    for project, cwd in store.sessions.projects():
        yield from (project, *working_folders(cwd))
    for column in ("namespace", "project"):
        yield from store.memories.count_by(column, MemoryFilter())
    yield from store.documents.count_by("namespace")


def _names(store: Store) -> Iterator[str]:
    """Yield the names and namespaces of all projects."""
    for project, _ in store.sessions.projects():
        yield project
    yield from store.memories.count_by("namespace", MemoryFilter())
    yield from store.documents.count_by("namespace")
