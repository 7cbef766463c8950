"""Titles, tags and pins that the user gives to sessions, and open items that the user dismissed."""

import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from ...core.errors import InvalidInput
from .database import AMONG, Database, listed

_TAG: Final = re.compile(r"[\w./-]{1,40}")
_TITLE_MAX: Final = 200
"""Maximum characters of a title."""


def tag_of(text: str) -> str:
    """Return a tag in lower case, without `#`. Raises `InvalidInput` for a text that is no tag."""
    name = text.strip().removeprefix("#").lower()
    if not _TAG.fullmatch(name):
        raise InvalidInput(f"Invalid tag: {text}", hint="Use up to 40 letters, digits and - _ . / without spaces.")
    return name


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
        """Give a session a title, on one line and not too long. An empty title restores Palaver's own."""
        self._set(session, "title", " ".join(title.split())[:_TITLE_MAX])

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

    def sessions_with(self, tags: Collection[str]) -> set[int]:
        """Return the store's IDs of the sessions with any of the tags. Raises `InvalidInput` for an unknown tag."""
        tagged = {tag: self.tagged(tag) for tag in tags}
        if unknown := [tag for tag, numbers in tagged.items() if not numbers]:
            hint = f"Tags: {', '.join(self.tags()) or 'none. Add one with palaver session tag'}."
            raise InvalidInput(f"No session has the tag {unknown[0]}", hint=hint)
        return {number for numbers in tagged.values() for number in numbers}

    def matching(self, words: Collection[str]) -> list[int]:
        """Return the store's IDs of the sessions whose title and tags by the user contain all words, ignoring case."""
        rows = self._db.rows(
            """SELECT s.id, coalesce(l.title, ''),
                    (SELECT group_concat(t.tag, ' ') FROM session_tag t WHERE t.session = s.id)
               FROM session s LEFT JOIN session_label l ON l.session = s.id
               WHERE l.title <> '' OR s.id IN (SELECT session FROM session_tag)"""
        )
        named = ((number, f"{title} {tags or ''}".casefold()) for number, title, tags in rows)
        return [number for number, text in named if words and all(word.casefold() in text for word in words)]

    def pinned(self) -> list[int]:
        """Return the store's IDs of the pinned sessions."""
        return self._db.numbers("SELECT session FROM session_label WHERE pinned <> 0")

    def tags(self) -> dict[str, int]:
        """Return the number of sessions of each tag, in alphabetical order."""
        return dict(self._db.rows("SELECT tag, count(*) FROM session_tag GROUP BY tag ORDER BY tag"))

    def dismiss(self, sessions: Collection[int], fact: str, *, undo: bool = False) -> None:
        """Leave a fact of the cards of these sessions out of lists of open items, or list it again."""
        query = "DELETE FROM dismissed_fact WHERE (session, hash) = (?, ?)"
        query = query if undo else "INSERT OR IGNORE INTO dismissed_fact VALUES (?, ?)"
        self._db.run_many(query, [(session, _hash(fact)) for session in sessions])

    def undismissed(self, session: int, facts: Collection[str]) -> tuple[str, ...]:
        """Return the facts of a session's card without those that the user dismissed."""
        dismissed = {
            value for (value,) in self._db.rows("SELECT hash FROM dismissed_fact WHERE session = ?", (session,))
        }
        return tuple(fact for fact in facts if not dismissed or _hash(fact) not in dismissed)

    def with_dismissals(self) -> list[int]:
        """Return the sessions of which the user dismissed facts."""
        return self._db.numbers("SELECT DISTINCT session FROM dismissed_fact")

    def drop_dismissals(self, sessions: Collection[int]) -> None:
        """Forget what was dismissed of these sessions, because hashes of deleted text must not stay."""
        self._db.run(f"DELETE FROM dismissed_fact WHERE session {AMONG}", (listed(sessions),))

    def _set(self, session: int, column: str, value: str | int) -> None:
        self._db.run(
            f"""INSERT INTO session_label (session, {column}) VALUES (?, ?)
                ON CONFLICT (session) DO UPDATE SET {column} = excluded.{column}""",
            (session, value),
        )


def _hash(fact: str) -> bytes:
    return blake2b(fact.encode(), digest_size=8).digest()
