"""What the commands about memories have in common: which memories, and what is said of one."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from palaver.core.config import Config
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.templates.json_output import to_json

from .judging import judging
from .made_up import refuse_only_made_up
from .output import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.memory import StoredMemory
    from palaver.observe.memory import MemoryCore

in_project = click.option("--project", metavar="NAME", help="A project's name or folder; `.` is the one you are in.")


def memory_core(*, make: bool = False) -> MemoryCore:
    """The memory core of this home; raises `StoreMissing` where there is nothing to ask yet."""
    home = Home.find()
    if not make:
        refuse_only_made_up(home, "memories list")
        home.check()
    from palaver.observe.memory import MemoryCore

    config = Config.read(home.config)
    return MemoryCore.open(home, config.model, judging(home, config))


def folder_of(project: str | None) -> str:
    """A project as it was named; the folder of this shell for `.`, empty for none."""
    return str(Path.cwd()) if project == "." else project or ""


def archived_as(project: str) -> str:
    """What a project that is named by its folder, as `.`, is found under: the folder, else its name where only that is
    archived. A bare name stays one, be there a folder of that name or not.
    """
    folder = Path(project).expanduser()
    if not is_folder(project) or not folder.is_dir():
        return project
    from palaver.archiver.store import Store

    whole, home = folder.resolve(), Home.find()
    if not home.has_database:
        return str(whole)
    with Store.open(home.database) as store:
        places = store.sessions.whereabouts()
    there = any(PurePath(cwd).is_relative_to(whole) for _, cwd in places if cwd)
    return whole.name if not there and whole.name in {project for project, _ in places} else str(whole)


def namespace_of(core: MemoryCore, project: str | None, *, claim: bool = False) -> str:
    """Return the namespace of a project that is named by its name or its folder; `global` for none.

    Args:
        core: The memory core.
        project: The name, or the folder.
        claim: Whether to keep the namespace for that folder from now on.

    Raises:
        InvalidInput: for what is no name.
    """
    from palaver.core.memory import project_namespace

    if project is None:
        return "global"
    folder = Path(project).expanduser()
    if project in {".", ".."} or (is_folder(project) and folder.is_dir()):
        return core.projects.claim(folder) if claim else core.projects.namespace(folder)
    found = project_namespace(project)
    if found == "global":
        raise InvalidInput(f"No name of a project: {project}", hint="Give its name or its folder.")
    return found


def is_folder(project: str) -> bool:
    """Return whether a project is named by its folder. A bare name is never one."""
    return project in {".", ".."} or not {"/", os.sep}.isdisjoint(project)


def types_of(core: MemoryCore, names: Sequence[str]) -> tuple[str, ...]:
    """Types as they are stored; raises `InvalidMemoryType` for one that neither a surface nor a memory has."""
    from palaver.core.memory import MemoryState
    from palaver.core.memory_filter import MemoryFilter
    from palaver.core.memory_types import known_type

    held = core.count_by("type", MemoryFilter(states=tuple(MemoryState)))
    return tuple(known_type(name, held) for name in names)


def say(held: StoredMemory, words: str, *, as_json: bool, taken: bool, **more: str) -> None:
    """Tell a memory as JSON with what `more` there is, or the words about it, and what was `taken` out of it now."""
    if as_json:
        print_json({**to_json(held), **more, **(secrets_told(held) if taken else {})})
    else:
        from palaver.templates.quote import line

        click.echo(line(words))
        if taken:
            tell_secrets(held)


def secrets_told(held: StoredMemory) -> dict[str, list[str]]:
    """The kinds of secrets that were taken out, where there are any."""
    from palaver.archiver.reading.secrets_report import kinds_of

    kinds = kinds_of(held.memory)
    return {"secrets_removed": kinds} if kinds else {}


def tell_secrets(held: StoredMemory) -> None:
    """Say that secrets were taken out, if any were."""
    for kinds in secrets_told(held).values():
        click.echo(f"Secrets were taken out of it and are stored nowhere: {', '.join(kinds)}.")
