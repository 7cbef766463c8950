"""Titles, tags and pins that the user gives to sessions."""

from collections.abc import Collection

from msgspec import Struct

from .database import AMONG, Database, listed


class SessionLabel(Struct, frozen=True):
    """Labels of a session. `title` is empty if the user has not renamed the session."""

    title: str = ""
    pinned: bool = False
    tags: tuple[str, ...] = ()


class SessionLabelTable:
    """Table of labels by the store's ID of the session. A deleted session loses its labels."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, sessions: Collection[int]) -> dict[int, SessionLabel]:
        """Return the labels of these sessions. Sessions without any are omitted."""
        rows = self._db.rows(
            f"""SELECT s.id, coalesce(l.title, ''), coalesce(l.pinned, 0),
                    (SELECT group_concat(t.tag, char(10)) FROM session_tag t WHERE t.session = s.id)
                FROM session s LEFT JOIN session_label l ON l.session = s.id
                WHERE s.id {AMONG}
                    AND (l.session NOT NULL OR EXISTS (SELECT 1 FROM session_tag WHERE session = s.id))""",
            (listed(sessions),),
        )
        return {
            number: SessionLabel(title, bool(pinned), tuple(sorted((tags or "").split())))
            for number, title, pinned, tags in rows
        }

    def rename(self, session: int, title: str) -> None:
        """Give a session a title. An empty title restores Palaver's own."""
        self._set(session, "title", title)

    def pin(self, session: int, *, pinned: bool) -> None:
        """Pin a session to the top of lists, or unpin it."""
        self._set(session, "pinned", int(pinned))

    def tag(self, session: int, added: Collection[str], removed: Collection[str] = ()) -> None:
        """Add and remove tags of a session."""
        self._db.run_many("INSERT OR IGNORE INTO session_tag VALUES (?, ?)", [(tag, session) for tag in added])
        self._db.run_many("DELETE FROM session_tag WHERE (tag, session) = (?, ?)", [(tag, session) for tag in removed])

    def tagged(self, tag: str) -> list[int]:
        """Return the store's IDs of the sessions with a tag."""
        return self._db.numbers("SELECT session FROM session_tag WHERE tag = ?", (tag,))

    def pinned(self) -> list[int]:
        """Return the store's IDs of the pinned sessions."""
        return self._db.numbers("SELECT session FROM session_label WHERE pinned <> 0")

    def tags(self) -> dict[str, int]:
        """Return the number of sessions of each tag, in alphabetical order."""
        return dict(self._db.rows("SELECT tag, count(*) FROM session_tag GROUP BY tag ORDER BY tag"))

    def _set(self, session: int, column: str, value: str | int) -> None:
        self._db.run(
            f"""INSERT INTO session_label (session, {column}) VALUES (?, ?)
                ON CONFLICT (session) DO UPDATE SET {column} = excluded.{column}""",
            (session, value),
        )
