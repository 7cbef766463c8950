"""The --project options: projects given by their names or folders."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import InvalidInput
from ..core.home import Home
from ..core.memory import MemoryFilter, MemoryState, project_namespace
from ..observe.archive import Archive
from ..search.query.tokenizer import check_projects, project_at

if TYPE_CHECKING:
    from ..observe.memory import MemoryCore

in_project = click.option("--project", metavar="NAME", help="Project: name, folder, or `.` (current folder).")
only_tags = click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only sessions with this tag.")
only_projects = click.option(
    "--project",
    "projects",
    multiple=True,
    metavar="NAME",
    help="Only this project: name, folder, or `.` (current folder).",
)


def folder_of(project: str | None) -> str:
    """Return the current folder for `.`, an empty text for None, and any other project unchanged."""
    return str(Path.cwd()) if project == "." else project or ""


def archived_as(project: str) -> str:
    """Return the name or full path under which a project is archived.

    A folder becomes a full path, or its name if the archive only contains the name. A bare name is returned unchanged,
    even if a folder with this name exists.
    """
    return places_of(project)[0]


def places_of(project: str) -> list[str]:
    """Return the values that select a project in a search.

    The first value is the name or full path under which the project is archived. For a folder with indexed documents,
    the second value is the namespace of these documents. The namespace differs from the folder's name if another
    project has the same name.
    """
    folder = Path(project).expanduser()
    if not is_folder(project) or not folder.is_dir():
        return [project]
    whole, home = folder.resolve(), Home.find()
    if not home.has_database:
        return [str(whole)]
    with Archive(home).store as store:
        archived, namespace = project_at(store, whole) or str(whole), store.projects.namespace(whole)
        return [archived, namespace] if store.documents.uses(namespace) else [archived]


def namespace_of(core: "MemoryCore", project: str | None, *, claim: bool = False) -> str:
    """Return the namespace of a project given by name or folder, or `global` for None.

    Args:
        core: The memory core.
        project: The name or the folder of the project.
        claim: True to reserve the namespace for that folder.

    Raises:
        InvalidInput: The name is invalid.
    """
    if project is None:
        return "global"
    folder = Path(project).expanduser()
    if project in {".", ".."} or (is_folder(project) and folder.is_dir()):
        return core.projects.claim(folder) if claim else core.projects.namespace(folder)
    found = project_namespace(project)
    if found == "global":
        raise InvalidInput(f"Invalid project name: {project}", hint="Give the name or the folder of a project.")
    return found


def known_namespaces_of(core: "MemoryCore", project: str) -> tuple[str, ...]:
    """Return the namespaces of a project: one for a folder, and for a name those of all folders with this name.

    Raises:
        InvalidInput: The name is invalid.
        UnknownProject: The project has no memory, session or document.
    """
    namespaces: tuple[str, ...] = (namespace_of(core, project),)
    if not is_folder(project):
        namespaces = tuple(sorted(core.projects.namesakes(project)))
    if not core.store.memories.count(MemoryFilter(namespaces=namespaces, states=tuple(MemoryState))):
        check_projects(core.store, [archived_as(project)])
    return namespaces


def is_folder(project: str) -> bool:
    """Return whether a project is given as a folder (`.`, `..` or a path with a slash) rather than as a bare name."""
    return project in {".", ".."} or not {"/", os.sep}.isdisjoint(project)
