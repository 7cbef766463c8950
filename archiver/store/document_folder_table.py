"""Table of watched folders: the folders whose documents the watcher keeps indexed.

`DocumentTable.delete` removes watched folders together with their documents.
"""

from ...core.document import DocumentFolder
from .database import Database
from .path_seal import PathSeal


class DocumentFolderTable:
    """Table of watched folders, by path and namespace."""

    def __init__(self, database: Database) -> None:
        self._db, self._paths = database, PathSeal(database)

    def add(self, folder: DocumentFolder) -> None:
        """Watch a folder, or change whether its subfolders are included."""
        self._db.run(
            """INSERT INTO watched_folder (path, namespace, recursive) VALUES (?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE SET recursive = excluded.recursive""",
            (self._paths.stored(folder.path), folder.namespace, folder.recursive),
        )

    def change_namespace(self, folder: DocumentFolder, target: str) -> None:
        """Move a watched folder, with its stored and queued documents, to the namespace `target`.

        Documents that the target namespace already contains are not moved.
        """
        path, namespace = self._paths.stored(folder.path), folder.namespace
        below = path.rstrip(b"/") + b"/"
        for table in ("document", "waiting_file"):
            self._db.run(
                f"UPDATE OR IGNORE {table} SET namespace = ? WHERE namespace = ? AND substr(path, 1, ?) = ?",
                (target, namespace, len(below), below),
            )
        self._db.run(
            "UPDATE OR IGNORE watched_folder SET namespace = ? WHERE namespace = ? AND path = ?",
            (target, namespace, path),
        )
        self._db.run("DELETE FROM watched_folder WHERE namespace = ? AND path = ?", (namespace, path))

    def all(self) -> list[DocumentFolder]:
        """Return the watched folders in path order."""
        rows = self._db.rows("SELECT path, namespace, recursive FROM watched_folder ORDER BY path, namespace")
        return [
            DocumentFolder(self._paths.path(path), namespace, bool(recursive)) for path, namespace, recursive in rows
        ]
