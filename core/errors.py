"""Errors that Palaver raises on purpose.

::

    PalaverError
    ├── InvalidInput            the caller can correct the call
    │   ├── QueryTooShort
    │   ├── QueryTooLong
    │   ├── QueryNotText
    │   ├── ConceptCount
    │   ├── FilterNotAllowed
    │   ├── InvalidDate
    │   ├── InvalidLimit
    │   ├── UnknownType
    │   ├── UnknownProject
    │   ├── UnknownIds
    │   ├── TooManyIds
    │   ├── PathOutsideArchive
    │   ├── InvalidLineRange
    │   ├── InvalidMemoryType
    │   ├── InvalidNamespace
    │   ├── MemoryNotFound
    │   ├── MemoryProtected    a golden rule; only `force` changes it
    │   ├── NothingToUndo      no edit is left to undo
    │   ├── DocumentNotFound
    │   ├── UnsupportedDocument
    │   └── DocumentOutsideRoots
    ├── ChangedMeanwhile        another process changed a planned item; nothing was done
    ├── SourceUnreadable        a file could not be read; other files are not affected
    │   ├── PartlyRead              parts of a file have an unsupported form
    │   ├── ClientConfigUnusable    a client's configuration file cannot be read or changed
    │   └── CopyDamaged         some lines of a raw copy are damaged
    │       └── CopyGone        a raw copy is missing
    ├── SessionNotRestorable    the agent's files of a session cannot be restored
    ├── DocumentUnreadable      a document could not be read; other documents are not affected
    │   └── NotADocument            a folder instead of a file, or a file instead of a folder
    ├── MnemonicsUnusable       memory files of a project cannot be read or written
    ├── ConfigInvalid           invalid value in config.toml or the environment
    ├── StoreError              database error
    │   ├── StoreMissing
    │   │   └── DemoOnly        only demo data is archived
    │   ├── StoreReadOnly
    │   ├── StoreBusy
    │   ├── StoreCorrupt
    │   ├── ValueRefused        the database cannot store a value
    │   ├── StoreOutdated       `palaver migrate` must convert the database first
    │   └── StoreFromFuture
    ├── IndexDamaged            the index is damaged; it can be rebuilt
    ├── IndexUnwritable         a new index cannot be written; the previous one stays
    ├── LeaseHeld               another process is writing
    ├── SyncRefused             a shared folder, or a file of another device, cannot be used
    ├── TeamDatabaseUnusable    the database of a team server cannot be reached or used
    ├── TeamRefused             a team server refused a request
    ├── TeamUnreachable         a team server did not answer
    ├── ModelUnavailable        the embedding model cannot be loaded
    ├── ServerNotReady          a server cannot open the archive
    ├── ServerReadOnly          a server in read-only mode does not write
    └── TemplateInvalid         a user's template does not render
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .ids import EXAMPLES


class PalaverError(Exception):
    """Base class of Palaver's errors. `hint` describes the next step for the caller."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint

    @property
    def full_message(self) -> str:
        """Message and hint as complete sentences."""
        return f"{str(self).removesuffix('.')}. {self.hint}".rstrip()


class InvalidInput(PalaverError):
    """Error: the arguments of a call are invalid. The message and the hint describe the correction."""


class QueryTooShort(InvalidInput):
    """Error: the query or a concept has fewer than two characters."""

    def __init__(self) -> None:
        super().__init__("Query too short", hint="Use at least 2 characters.")


class QueryTooLong(InvalidInput):
    """Error: the query has more characters than are allowed."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"Query too long: {length:,} characters, at most {limit:,} allowed", hint="Use fewer words.")


class QueryNotText(InvalidInput):
    """Error: the query is neither a text nor a list of texts."""

    def __init__(self) -> None:
        super().__init__("Query must be string or array", hint="Use a string, or an array of 2-5 strings.")


class ConceptCount(InvalidInput):
    """Error: the list of concepts does not have two to five entries."""

    def __init__(self) -> None:
        super().__init__("Query array must have 2-5 items", hint="Add or remove concepts.")


class FilterNotAllowed(InvalidInput):
    """Error: a filter is allowed only in searches for a single concept."""

    hint = "Search one concept with these filters, or several without them."

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{', '.join(names)}: allowed only in searches for one concept")


class InvalidDate(InvalidInput):
    """Error: the text is not a valid date."""

    hint = "Use YYYY-MM-DD format."

    def __init__(self, text: str, *, hint: str = "", message: str = "Invalid date format") -> None:
        self.text = text
        super().__init__(message, hint=hint)


class InvalidLimit(InvalidInput):
    """Error: the limit on the number of results is not between 1 and 50."""

    hint = "Ask for 1 to 50 results."

    def __init__(self, limit: object) -> None:
        super().__init__(f"Invalid limit: {limit}")


class UnknownType(InvalidInput):
    """Error: the observation type is unknown."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"Unknown observation type: {name}", hint=f"Use one of: {', '.join(known)}.")


class UnknownProject(InvalidInput):
    """Error: no session, memory or document belongs to this project. `near` contains the most similar project names."""

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        self.name, self.near = name, tuple(near)
        question = f"Did you mean {' or '.join(near)}? " if near else ""
        super().__init__(f"Unknown project: {name}", hint=f"{question}`palaver projects` lists all projects.")


class UnknownIds(InvalidInput):
    """Error: these IDs do not exist. `gone` lists those that may have belonged to deleted items."""

    def __init__(self, ids: Sequence[str], gone: Sequence[str] = ()) -> None:
        self.ids, self.gone = tuple(ids), tuple(gone)
        one = "no longer exists. It may have been deleted or re-extracted under a new ID. Search for it."
        several = "no longer exist. They may have been deleted or re-extracted under new IDs. Search for them."
        missing = f"{', '.join(gone)} {one if len(gone) == 1 else several}"
        known = f"Use IDs from search results, such as {EXAMPLES}, or at least 4 characters of a session ID."
        super().__init__(f"Unknown ID: {', '.join(ids)}", hint=missing if gone else known)


class TooManyIds(InvalidInput):
    """Error: the request has no IDs, or more IDs than allowed."""

    def __init__(self, count: int, maximum: int) -> None:
        self.count = count
        hint = f"Give 1 to {maximum} IDs in each request."
        super().__init__(f"{count} IDs given, 1 to {maximum} allowed", hint=hint)


class PathOutsideArchive(InvalidInput):
    """Error: the path is not a file of the archive. The message hides the cause, so that callers cannot probe files."""

    hint = "Use an ID from search results, a path, or at least 4 characters of a session ID."

    def __init__(self, path: str, *, near: str = "") -> None:
        self.path = path
        super().__init__(f"No archived file or session: {path}", hint=f"{near}{type(self).hint}")


class InvalidLineRange(InvalidInput):
    """Error: the line range starts before line 1, ends before its start, or is past the end of the file."""

    hint = "Check line numbers."

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Invalid line range: {reason}")


class InvalidMemoryType(InvalidInput):
    """Error: the memory type cannot be stored, or the toolset does not support it."""

    def __init__(self, name: str, *, hint: str) -> None:
        super().__init__(f"Invalid memory type: {name}", hint=hint)


class InvalidNamespace(InvalidInput):
    """Error: the format of the namespace is invalid."""

    hint = "Use default, global or project:NAME. A name has letters, digits, _ and -."

    def __init__(self, namespace: str) -> None:
        super().__init__(f"Invalid namespace: {namespace}")


class MemoryNotFound(InvalidInput):
    """Error: no stored memory has this ID."""

    hint = "Search or list the memories to find its ID, such as mem_7."

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"Memory not found: {memory_id}")


class MemoryProtected(InvalidInput):
    """Error: changing or deleting a golden rule requires `force`."""

    hint = "Use force to change it anyway."

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"Golden rule is protected: {memory_id}")


class DocumentNotFound(InvalidInput):
    """Error: the file or folder to index does not exist."""

    hint = "Check the path. Relative paths start in the folder in which Palaver was started."

    def __init__(self, path: Path) -> None:
        super().__init__(f"File not found: {path}")


class UnsupportedDocument(InvalidInput):
    """Error: the type of the file is not supported."""

    def __init__(self, path: Path, known: Sequence[str]) -> None:
        super().__init__(f"Unsupported file type: {path.suffix or path.name}", hint=f"Use {', '.join(known)}.")


class DocumentOutsideRoots(InvalidInput):
    """Error: the path, or the target of a link in it, is outside the folders that may be indexed."""

    hint = "Index it with `palaver index PATH`, or name its folder in document_roots in config.toml."

    def __init__(self, path: Path, *, hint: str = "") -> None:
        super().__init__(f"Path not allowed: {path}", hint=hint)


class DocumentUnreadable(PalaverError):
    """Error: a document cannot be read because of its permissions, encoding, size or content."""

    hint = "Check that another program can open it."

    def __init__(self, path: Path, reason: str, *, hint: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"Failed to read file: {reason}", hint=hint)


class NotADocument(DocumentUnreadable, InvalidInput):
    """Error: the path is a folder instead of a file, or a file instead of a folder."""


class MnemonicsUnusable(PalaverError):
    """Error: a memory file or folder cannot be read, written or deleted. The file is unchanged."""

    hint = "Check its permissions, and that it is not a link."

    def __init__(self, path: str, reason: str, *, hint: str = "") -> None:
        self.reason = reason
        super().__init__(f"{path}: {reason}", hint=hint)


class NothingToUndo(InvalidInput):
    """Error: the memory was never edited, or all its edits were undone."""

    def __init__(self, memory_id: str) -> None:
        hint = f"It has no edit left to undo. See `palaver memories history {memory_id}`."
        super().__init__(f"Nothing to undo: {memory_id}", hint=hint)


class ChangedMeanwhile(PalaverError):
    """Error: another process changed some of the planned items. The operation changed nothing."""

    hint = "Run the command again for a new preview."

    def __init__(self) -> None:
        super().__init__("Another process changed some of the selected items")


class SourceUnreadable(PalaverError):
    """Error: a file or folder cannot be read. The archive is unchanged."""

    def __init__(self, path: Path, reason: str, *, hint: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}", hint=hint)


class SessionNotRestorable(PalaverError):
    """Error: the files of a session cannot be restored in the agent's folder. No file was changed."""

    hint = "Start a new session from a summary: palaver handoff SESSION --to AGENT"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The deleted session cannot be restored: {reason}")


class PartlyRead(SourceUnreadable):
    """Error: parts of a file have an unsupported form and were not read. All other parts were read."""


class ClientConfigUnusable(SourceUnreadable):
    """Error: the configuration file of a client cannot be read or changed. The file is unchanged."""

    hint = "The file was not changed. Correct it, or add the entry that `palaver install CLIENT --print` shows."


class CopyDamaged(SourceUnreadable):
    """Error: lines of a raw copy are damaged. The other lines can be read."""

    hint = "Read the other lines with `palaver read PATH LINES`."


class CopyGone(CopyDamaged):
    """Error: the raw copy is missing from the archive."""

    hint = "Run `palaver fsck --repair` to copy it from the agent's file, or restore a backup."

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the raw copy is missing from the archive")


class ConfigInvalid(PalaverError):
    """Error: a setting is invalid."""


class StoreError(PalaverError):
    """Database error."""


class StoreMissing(StoreError):
    """Error: the Palaver home has no database. If `copies` is true, the home contains raw copies."""

    def __init__(self, path: Path, *, copies: bool = False) -> None:
        self.copies = copies
        if copies:
            hint = "Restore a backup of palaver.db, or run `palaver rebuild --from-archive` to parse the copies again."
            super().__init__(f"The database in {path} is missing, but its raw copies exist", hint=hint)
        else:
            super().__init__(f"No archive at {path}", hint="Run `palaver up` to create one.")


class DemoOnly(StoreMissing):
    """Error: the home has no database, but a separate home contains demo data."""

    def __init__(self, path: Path, *, hint: str) -> None:
        self.copies = False
        PalaverError.__init__(self, f"Only demo data is archived, in {path}", hint=hint)


def how_to_make_writable(folder: Path) -> str:
    """Return the next step for a folder that cannot be written."""
    with suppress(OSError):
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return "It is on a read-only file system. To change it, set PALAVER_HOME to a copy on another disk."
    return f"Its owner can run `chmod -R u+w {folder}`."


class StoreReadOnly(StoreError):
    """Error: the operation has to write, but the home is read-only. Nothing was changed."""

    def __init__(self, path: Path, why: str = "this operation has to write", *, hint: str = "") -> None:
        super().__init__(f"{path} is read-only, and {why}", hint=hint or how_to_make_writable(path))


class StoreBusy(StoreError):
    """Error: another process locked the database for longer than the timeout."""


class StoreCorrupt(StoreError):
    """Error: the database fails SQLite's integrity check. Nothing is moved or deleted."""


class ValueRefused(StoreError):
    """Error: the database cannot store a value, such as an integer of more than 64 bits."""


class StoreOutdated(StoreError):
    """Error: an earlier version of Palaver created the database, which must be converted. Nothing was changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was made by an earlier version of Palaver",
            hint="Run `palaver migrate` to convert it. The old database is kept.",
        )


class StoreFromFuture(StoreError):
    """Error: a newer version of Palaver created the database."""


class IndexDamaged(PalaverError):
    """Error: an index file is missing or differs from the manifest."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}", hint="Run `palaver rebuild` to rebuild the index.")


class IndexUnwritable(PalaverError):
    """Error: a new index cannot be written, for example on a full disk. The previous index stays in use."""

    hint = "Nothing is lost, and search still works. Free some space, then run `palaver archive`."

    def __init__(self, reason: str) -> None:
        super().__init__(f"the index could not be written: {reason}")


class LeaseHeld(PalaverError):
    """Error: another process holds the lease."""


class SyncRefused(PalaverError):
    """Error: the shared folder of `palaver sync`, or a file of another device, cannot be used."""


class TeamDatabaseUnusable(PalaverError):
    """Error: the database of a team server cannot be reached, or has another schema or unsafe rights."""


class TeamRefused(PalaverError):
    """Error: a team server refuses a request. `status` is the status of its HTTP reply."""

    def __init__(self, message: str, *, hint: str = "", status: int = 400) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class TeamUnreachable(PalaverError):
    """Error: a team server did not answer completely. It may have carried out the request."""


class ModelUnavailable(PalaverError):
    """Error: the embedding model is missing or damaged, or requires a library that is not installed."""


class ServerNotReady(PalaverError):
    """Error: the server cannot open the archive, for the reason `reason`. The next tool call tries again."""

    def __init__(self, reason: PalaverError) -> None:
        super().__init__("Server not initialized", hint=reason.full_message)


class ServerReadOnly(PalaverError):
    """Error: the tool has to write, but the server is in read-only mode. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("Server is in read-only mode. Write operations are disabled.")


class TemplateInvalid(PalaverError):
    """Error: a user's template does not parse or render."""
