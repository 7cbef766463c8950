"""Projects, each with its own namespace, so that two projects with the same name share no memories."""

from itertools import count
from pathlib import Path
from typing import Final

from ...core.conversation import Session
from ...core.memory import project_namespace
from ...core.project import identity_of, main_worktree, root_of
from .database import Database

_FOLDERS: Final = """
SELECT folder FROM (
    SELECT cwd AS folder, coalesce(started, 0) AS at FROM session UNION ALL
    SELECT project, created FROM memory WHERE origin = 'human'
) WHERE folder LIKE '/%' GROUP BY folder ORDER BY min(at), folder
"""
"""SQL query for the folders of sessions and of memories that the user stored, oldest first."""


def plain_namespace(folder: Path) -> str:
    """Return the namespace of a folder's project without a number, such as `project:repo`.

    All projects with the same name have the same plain namespace. Return `global` if the folder has no project.
    """
    return project_namespace(str(main_worktree(root_of(folder))))


class ProjectTable:
    """Table that assigns a namespace to each project.

    The first project with a name gets the plain namespace `project:repo`. Other projects with this name get a number,
    such as `project:repo-2`.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def namespace(self, folder: Path) -> str:
        """Return the namespace of a folder's project without reserving it, or `global` if the folder has no project."""
        root = root_of(folder)
        return self._known(root) or self._free(root)

    def claim(self, folder: Path) -> str:
        """Return the namespace of a folder's project, and reserve the namespace for this project."""
        root = root_of(folder)
        identity = identity_of(root)
        if known := self._claimed(identity):
            return known
        with self._db.transaction():
            namespace = self.namespace(root)
            if namespace != "global":
                self._db.run("DELETE FROM project WHERE namespace = ?", (namespace,))
                self._db.run("INSERT INTO project VALUES (?, ?, ?)", (identity, namespace, plain_namespace(root)))
        return namespace

    def of_session(self, session: Session) -> str:
        """Return the namespace of a session's project. If the session has no absolute folder, use the project name."""
        if not session.cwd.startswith("/"):
            return project_namespace(session.project)
        return self.of_archived(Path(session.cwd))

    def of_archived(self, folder: Path) -> str:
        """Return the namespace of the project of an archived folder, or `global` if the folder has no project.

        A folder that no longer exists is known only by its name. Unless a namespace is reserved for it, it belongs to
        the project with the plain namespace of this name.
        """
        root = root_of(folder)
        return self._known(root) or (self._free(root) if root.exists() else plain_namespace(root))

    def contains(self, namespace: str, session: Session) -> bool:
        """Return whether a session belongs to the project with this namespace. This is faster than `of_session`."""
        if not session.cwd.startswith("/"):
            return project_namespace(session.project) == namespace
        root = root_of(Path(session.cwd))
        if known := self._known(root):
            return known == namespace
        return namespace.startswith(plain_namespace(root)) and self.of_archived(root) == namespace

    def namesakes(self, name: str) -> set[str]:
        """Return the namespaces of all projects with this name, including numbered namespaces."""
        plain = project_namespace(name)
        rows = self._db.rows("SELECT namespace FROM project WHERE plain = ?", (plain,))
        return {plain, *(namespace for (namespace,) in rows)} - {"global"}

    def _known(self, root: Path) -> str:
        """Return the namespace reserved for a project, or an empty string if none is reserved.

        The namespace may be reserved under the path of the project, from the time before its repository had a remote.
        """
        return self._claimed(identity_of(root)) or self._claimed(str(main_worktree(root)))

    def _claimed(self, identity: str) -> str:
        row = self._db.one("SELECT namespace FROM project WHERE identity = ?", (identity,))
        return row[0] if row else ""

    def _free(self, root: Path) -> str:
        """Return the namespace that a project without a reserved namespace would get.

        This is the plain namespace, such as `project:repo`, if it is not reserved and this is the first project with
        the name. Otherwise, a number is added.
        """
        plain = plain_namespace(root)
        rows = self._db.rows("SELECT namespace, 1 FROM project UNION ALL SELECT DISTINCT namespace, 0 FROM memory")
        taken = {namespace for namespace, _ in rows}
        claimed = (plain, 1) in rows
        if plain == "global" or (not claimed and self._first(plain, existing=root.exists()) in {"", identity_of(root)}):
            return plain
        return next(name for number in count(2) if (name := f"{plain}-{number}") not in taken)

    def _first(self, plain: str, *, existing: bool) -> str:
        """Return the identity of the first project with this plain namespace in which the user worked.

        Return an empty string if there is no such project. With `existing`, ignore folders that no longer exist.
        """
        folders: list[str] = [folder for (folder,) in self._db.rows(_FOLDERS)]
        parts = {part for folder in folders for part in folder.split("/")}
        alike = {part for part in parts if project_namespace(part) == plain}
        for folder in folders:
            if not alike.isdisjoint(folder.split("/")):
                root = root_of(Path(folder))
                if plain_namespace(root) == plain and (root.exists() or not existing):
                    return identity_of(root)
        return ""
