"""Projects of this machine as a team sees them, with the level of each."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from ...archiver.store import Store
from ...core.conversation import Session
from ...core.home import (
    folder_path,
    identity_of,
    is_in_project,
    is_windows_path,
    main_worktree,
    repository_folder,
    root_of,
)
from ...core.memory import project_namespace
from ...core.text import nfc
from ..protocol import Level, SharedProject

_NAME: Final = "name:"
"""Prefix of the identity of a project without a folder."""


class Place(NamedTuple):
    """Project of a folder: its identity on this machine, what the team may see of it, and its ID and name there.

    `folder` is empty if only the name of the project is known.
    """

    identity: str
    level: Level
    project: SharedProject
    folder: str


class Places:
    """Projects of the sessions of an archive. All projects are private unless the user gave them a level."""

    def __init__(self, store: Store, person: str, private: tuple[str, ...], levels: Mapping[str, str]) -> None:
        """Prepare the projects. `private` are the names and folders in the setting `private_projects`."""
        self._store, self._person, self._private, self._levels = store, person, private, levels
        self._folders = store.team.folders()
        self._known = dict[tuple[str, str], Place]()

    def of_session(self, session: Session) -> Place:
        """Return the project of a session."""
        return self.of_folder(session.cwd, session.project)

    def of_folder(self, folder: str, name: str = "") -> Place:
        """Return the project of a folder or, without a folder, of a name."""
        if (folder, name) not in self._known:
            self._known[folder, name] = self._found(folder, name)
        return self._known[folder, name]

    def of_all_sessions(self) -> dict[tuple[str, str], Place]:
        """Return the projects of which more than nothing is shared, by name and folder of their sessions."""
        places = {(name, folder): self.of_folder(folder, name) for name, folder in self._store.sessions.projects()}
        return {pair: place for pair, place in sorted(places.items()) if place.level is not Level.PRIVATE}

    def namespaces(self) -> dict[str, Place]:
        """Return the projects whose conversations are shared, by the namespace of their memories."""
        namespaces = dict[str, Place]()
        for (name, folder), place in self.of_all_sessions().items():
            if place.level.shows_conversations:
                is_folder = folder.startswith("/")
                space = self._store.projects.of_archived(Path(folder)) if is_folder else project_namespace(name)
                namespaces.setdefault(space, place)
        namespaces.pop("global", None)
        return namespaces

    def new_folders(self) -> Mapping[str, str]:
        """Return the identities of projects that have to be recorded, by folder."""
        shared = {folder: place.identity for (_, folder), place in self.of_all_sessions().items()}
        return {
            folder: identity
            for folder, identity in shared.items()
            if folder.startswith("/") and self._folders.get(folder) != identity
        }

    def own(self, name: str) -> SharedProject:
        """Return a project that only this person has, such as that of memories that belong to no repository."""
        return SharedProject(_hash(f"{self._person}\n{name}"), name)

    def _found(self, folder: str, name: str) -> Place:
        identity, older = identities(folder, name, self._folders)
        level = Level(self._levels.get(identity) or self._levels.get(older) or Level.PRIVATE)
        if is_in_project(self._private, name, *filter(None, (folder,))):
            level = Level.PRIVATE
        shown = "home" if folder == str(Path.home()) else PurePath(identity.removeprefix(_NAME)).name or name
        has_remote = not (identity.startswith(("/", _NAME)) or is_windows_path(identity))
        project = SharedProject(_hash(identity), shown) if has_remote else self.own(shown)
        return Place(identity, level, project, older or repository_folder(folder))


def identities(folder: str, name: str, recorded: Mapping[str, str]) -> tuple[str, str]:
    """Return the identity of a project, and the one that it had before its repository had a remote.

    `recorded` has the identities of folders that may have been deleted. A folder of Windows is identified by its path,
    with an upper-case drive and with slashes.
    """
    if is_windows_path(folder):
        windows = folder_path(repository_folder(folder))
        return f"{windows.drive.upper()}{windows.as_posix()[len(windows.drive) :]}", ""
    if not folder.startswith("/"):
        return f"{_NAME}{name}", ""
    path = Path(folder)
    if folder in recorded and not path.exists():
        return recorded[folder], ""
    root = root_of(path)
    return identity_of(root), nfc(str(main_worktree(root)))


def _hash(text: str) -> str:
    return sha256(f"palaver-project\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
