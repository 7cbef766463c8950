"""Privacy: the projects of which nothing is ever sent."""

from collections.abc import Collection
from pathlib import PurePath

from ...archiver.store import Store, StoredExchange
from ...core.conversation import Session
from ...core.memory import Memory, project_namespace


class Privacy:
    """Knows private projects by name or by a folder that they lie in."""

    def __init__(self, store: Store, projects: Collection[str]) -> None:
        self._store, self._projects = store, frozenset(projects)
        self._sessions: dict[int, Session] = {}

    def covers(self, stored: StoredExchange) -> bool:
        """Whether this exchange belongs to a private project."""
        if not self._projects:
            return False
        if stored.session not in self._sessions:
            self._sessions[stored.session] = self._store.sessions.load(stored.session)
        session = self._sessions[stored.session]
        folders = [PurePath(folder) for folder in (session.cwd, stored.exchange.cwd) if folder]
        names = {session.project, *(str(above) for folder in folders for above in (folder, *folder.parents))}
        return not names.isdisjoint(self._projects)


def is_private(memory: Memory, projects: Collection[str]) -> bool:
    """Whether a memory belongs to a private project, by its namespace, its project or the file it is kept in."""
    folders = [PurePath(place) for place in (memory.project, memory.path) if place]
    names = {
        memory.namespace.partition(":")[2],
        *(str(above) for place in folders for above in (place, *place.parents)),
    }
    spaces = {project_namespace(each) for each in projects} - {"global"}
    return memory.namespace in spaces or not names.isdisjoint(projects)
