"""Privacy: the projects of which nothing is ever sent."""

from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import PurePath

from ...archiver.store import Store, StoredExchange
from ...core.conversation import Session
from ...core.memory import Memory, project_namespace


class Privacy:
    """Knows private projects by name or by a folder that they lie in.

    What is asked of sessions is remembered: make another one for what may have been archived meanwhile.
    """

    def __init__(self, store: Store, projects: Collection[str]) -> None:
        self._store, self._projects = store, frozenset(projects)
        self._spaces = self._namesakes(projects)
        self._sessions: dict[int, Session] = {}

    def covers(self, stored: StoredExchange) -> bool:
        """Whether this exchange belongs to a private project."""
        if not self._projects:
            return False
        if stored.session not in self._sessions:
            self._sessions[stored.session] = self._store.sessions.load(stored.session)
        session = self._sessions[stored.session]
        return self._names(session.project, session.cwd) or self._names("", stored.exchange.cwd)

    def covers_memory(self, memory: Memory) -> bool:
        """Whether a memory belongs to a private project: by its namespace, its project, the file it is kept in, or the
        session in which it was stored. Where none of them tells its folder, it does as soon as any session of a
        project of its name lies in a private folder.
        """
        if not self._projects:
            return False
        space, _, name = memory.namespace.partition(":")
        if memory.namespace in self._spaces or self._names(name, memory.project, memory.path):
            return True
        whereabouts = {
            where
            for native_id in {memory.session_id, name if space == "session" else ""} - {""}
            for where in self._store.sessions.whereabouts(native_id)
        }
        if any(self._names(*where) for where in whereabouts):
            return True
        spaces = {memory.namespace if space == "project" else "global", project_namespace(memory.project)} - {"global"}
        told = {project_namespace(project) for project, folder in whereabouts if folder}
        lies_somewhere = any(PurePath(place).is_absolute() for place in (memory.project, memory.path))
        return not (lies_somewhere or spaces <= told or spaces.isdisjoint(self._spaces_within))

    @cached_property
    def _spaces_within(self) -> set[str]:
        """The namespaces of all projects with a session in a private folder."""
        return self._namesakes(where[0] for where in self._store.sessions.whereabouts() if self._names(*where))

    def _namesakes(self, names: Iterable[str]) -> set[str]:
        """Return the namespaces of all projects of these names: which of them is private, a name does not say."""
        return {space for name in set(names) for space in self._store.projects.namesakes(name)}

    def _names(self, name: str, *folders: str) -> bool:
        """Whether a name is that of a private project, or a folder is one or lies in one."""
        places = [PurePath(folder) for folder in folders if folder]
        names = {name, *(str(above) for place in places for above in (place, *place.parents))}
        return not names.isdisjoint(self._projects)
