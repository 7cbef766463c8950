"""Every error that Palaver raises on purpose.

::

    PalaverError
    ├── InvalidInput            the caller can correct the call
    │   ├── QueryTooShort
    │   ├── QueryNotText
    │   ├── ConceptCount
    │   ├── FilterNotAllowed
    │   ├── InvalidDate
    │   ├── InvalidLimit
    │   ├── UnknownType
    │   ├── UnknownIds
    │   ├── TooManyIds
    │   ├── PathOutsideArchive
    │   ├── InvalidLineRange
    │   ├── InvalidMemoryType
    │   ├── InvalidNamespace
    │   ├── MemoryNotFound
    │   ├── MemoryProtected    a golden rule, which only `force` removes
    │   ├── NothingToUndo      no edit is left that could be taken back
    │   ├── DocumentNotFound
    │   ├── UnsupportedDocument
    │   └── DocumentOutsideRoots
    ├── ChangedMeanwhile        what was planned is not what is there any more; nothing was done
    ├── SourceUnreadable        a transcript could not be read; the others go on
    │   └── CopyDamaged         a part of an archived copy is not what was written
    │       └── CopyGone        a copy is not there any more
    ├── DocumentUnreadable      a file that was to be indexed could not be read; the others go on
    ├── MnemonicsUnusable       a project's files of memories cannot be read or written
    ├── ConfigInvalid           config.toml or the environment says something impossible
    ├── StoreError              the database said no
    │   ├── StoreMissing
    │   │   └── DemoOnly      only demo data is archived
    │   ├── StoreReadOnly
    │   ├── StoreBusy
    │   ├── StoreCorrupt
    │   ├── ValueRefused        what was read holds something that the database cannot
    │   └── StoreFromFuture
    ├── IndexDamaged            a derived index failed its checks; it can be rebuilt
    ├── IndexUnwritable         a new index could not be written; the one before stays
    ├── LeaseHeld               another process is writing
    ├── ModelUnavailable        the embedding model cannot be loaded
    ├── ServerNotReady          a surface cannot open what its tools work with
    └── TemplateInvalid         a template of the user does not render

Context rides on the exception as attributes; each surface words it for its own readers.
"""

from collections.abc import Sequence
from pathlib import Path

from .ids import EXAMPLES


class PalaverError(Exception):
    """Base of the tree. `hint` says what the caller can do next."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint

    @property
    def told(self) -> str:
        """What happened and what to do next, as sentences."""
        return f"{self}. {self.hint}".rstrip()


class InvalidInput(PalaverError):
    """The call itself is wrong; the message says how to correct it."""


class QueryTooShort(InvalidInput):
    """A query or concept of fewer than two characters."""

    def __init__(self) -> None:
        super().__init__("Query too short", hint="Use at least 2 characters.")


class QueryNotText(InvalidInput):
    """A query that is neither text nor a list of texts."""

    def __init__(self) -> None:
        super().__init__("Query must be string or array", hint="Use a string, or an array of 2-5 strings.")


class ConceptCount(InvalidInput):
    """A list of concepts that is not two to five long."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__("Query array must have 2-5 items", hint="Add or remove concepts.")


class FilterNotAllowed(InvalidInput):
    """A filter that only a single-concept search can apply."""

    hint = "Search one concept with these filters, or several without them."

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"{', '.join(names)}: for single-concept searches only")


class InvalidDate(InvalidInput):
    """A date that is not a real calendar date in ISO form."""

    hint = "Use YYYY-MM-DD format."

    def __init__(self, text: str, *, hint: str = "", message: str = "Invalid date format") -> None:
        self.text = text
        super().__init__(message, hint=hint)


class InvalidLimit(InvalidInput):
    """A number of results outside 1-50."""

    hint = "Ask for 1 to 50 results."

    def __init__(self, limit: object) -> None:
        self.limit = limit
        super().__init__(f"Invalid limit: {limit}")


class UnknownType(InvalidInput):
    """An observation type that does not exist."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        super().__init__(f"Unknown observation type: {name}", hint=f"Use one of: {', '.join(known)}.")


class UnknownIds(InvalidInput):
    """Ids that no stored item has. Those that are `gone` can have been given to what was forgotten or made anew."""

    def __init__(self, ids: Sequence[str], gone: Sequence[str] = ()) -> None:
        self.ids, self.gone = tuple(ids), tuple(gone)
        one = "is not here, or no more: it may be forgotten, or told anew under another ID. Search for it."
        several = "are not here, or no more: they may be forgotten, or told anew under other IDs. Search for them."
        anew = f"{', '.join(gone)} {one if len(gone) == 1 else several}"
        known = f"Take IDs from search results; they look like {EXAMPLES}."
        super().__init__(f"Unknown ID: {', '.join(ids)}", hint=anew if gone else known)


class TooManyIds(InvalidInput):
    """More ids than one request may name, or none."""

    hint = "Split into multiple requests if needed."

    def __init__(self, count: int, maximum: int) -> None:
        self.count, self.maximum = count, maximum
        super().__init__(f"{count} IDs given, 1 to {maximum} allowed")


class PathOutsideArchive(InvalidInput):
    """A path that names no file inside the archive. One answer for all reasons, so that nothing can be probed."""

    hint = "`palaver show ID` prints the path of a hit; its ID will do, or 6 characters or more of a session's."

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"File not found: {path}")


class InvalidLineRange(InvalidInput):
    """A line range that starts before 1, ends before it starts, or lies past the end of the file."""

    hint = "Check line numbers."

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Invalid line range: {reason}")


class InvalidMemoryType(InvalidInput):
    """A memory type that cannot be stored, or that the surface does not know."""

    def __init__(self, name: str, *, hint: str) -> None:
        self.name = name
        super().__init__(f"Invalid memory type: {name}", hint=hint)


class InvalidNamespace(InvalidInput):
    """A namespace that is not one of the forms."""

    hint = "Use default, global or project:NAME; a name has letters, digits, _ and -."

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        super().__init__(f"Invalid namespace: {namespace}")


class MemoryNotFound(InvalidInput):
    """An id that no memory has."""

    hint = "Find its id, as in mem_7, with recall, or list the memories."

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        super().__init__(f"Memory not found: {memory_id}")


class MemoryProtected(InvalidInput):
    """A golden rule that would have been changed or removed without being asked twice."""

    hint = "Say so with force if you mean it."

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        super().__init__(f"Golden rule is protected: {memory_id}")


class DocumentNotFound(InvalidInput):
    """A file or folder to index that is not there."""

    hint = "Check the path; a relative one starts in the folder that Palaver was started in."

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"File not found: {path}")


class UnsupportedDocument(InvalidInput):
    """A file of a kind that is not taken up."""

    def __init__(self, path: Path, known: Sequence[str]) -> None:
        self.path = path
        super().__init__(f"Unsupported file type: {path.suffix or path.name}", hint=f"Use {', '.join(known)}.")


class DocumentOutsideRoots(InvalidInput):
    """A path that leads out of the folders from which documents may be taken up, itself or through a link."""

    hint = "Index it with `palaver index PATH`, or name its folder in document_roots in config.toml."

    def __init__(self, path: Path, *, hint: str = "") -> None:
        self.path = path
        super().__init__(f"Path not allowed: {path}", hint=hint)


class DocumentUnreadable(PalaverError):
    """A document that cannot be read: its rights, its encoding, its size, or what is in it."""

    hint = "See whether another program can open it."

    def __init__(self, path: Path, reason: str, *, hint: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"Failed to read file: {reason}", hint=hint)


class MnemonicsUnusable(PalaverError):
    """A file or folder of a project's memories that cannot be read, written or deleted. It is as it was."""

    hint = "See whether you may write there, and whether it is a link."

    def __init__(self, path: str, reason: str, *, hint: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}", hint=hint)


class NothingToUndo(InvalidInput):
    """A memory that says what it said at first."""

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        hint = f"It says what it said at first. What happened to it: `palaver memories history {memory_id}`."
        super().__init__(f"Nothing to undo: {memory_id}", hint=hint)


class ChangedMeanwhile(PalaverError):
    """Another process changed something of what was planned. Nothing was done."""

    hint = "Run the command again for a new preview."

    def __init__(self) -> None:
        super().__init__("Something of it changed just now")


class SourceUnreadable(PalaverError):
    """A file or folder that cannot be read. Nothing already archived is touched."""

    def __init__(self, path: Path, reason: str, *, hint: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}", hint=hint)


class CopyDamaged(SourceUnreadable):
    """A part of a copy in the archive is not what was written there; all other lines of it can be read."""

    hint = "All other lines can be read: name them with `palaver read PATH LINES`."


class CopyGone(CopyDamaged):
    """A copy that was made is not in the archive any more."""

    hint = "Run `palaver fsck --repair`: it copies anew what the agent still has. Otherwise restore a backup of it."

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the copy is gone from the archive")


class ConfigInvalid(PalaverError):
    """A setting that cannot be used."""


class StoreError(PalaverError):
    """The database could not do what was asked."""


class StoreMissing(StoreError):
    """There is no archive in this home yet, or its database is gone while the `copies` are there."""

    def __init__(self, path: Path, *, copies: bool = False) -> None:
        self.path, self.copies = path, copies
        if copies:
            hint = (
                "Put a backup of palaver.db there, or run `palaver rebuild --from-archive`: it reads every copy again."
            )
            super().__init__(f"the database in {path} is gone, but the archived copies are there", hint=hint)
        else:
            super().__init__(f"no archive at {path}", hint="Run `palaver up` to make one.")


class DemoOnly(StoreMissing):
    """Only demo data is archived, in a home of its own."""

    def __init__(self, path: Path, *, hint: str) -> None:
        self.path, self.copies = path, False
        PalaverError.__init__(self, f"Only demo data is archived, in {path}", hint=hint)


class StoreReadOnly(StoreError):
    """The home may only be read by who asks for something that has to be written; nothing of it was touched."""

    def __init__(self, path: Path, why: str = "this has to be written down") -> None:
        hint = f"Searching and reading go on. To write, let yourself: `chmod -R u+w {path}`, as its owner."
        super().__init__(f"{path} may only be read, and {why}", hint=hint)


class StoreBusy(StoreError):
    """Another process kept the database locked for longer than the waiting time."""


class StoreCorrupt(StoreError):
    """SQLite's own integrity check failed. Nothing is moved or deleted on our side."""


class ValueRefused(StoreError):
    """A value that no column can hold, such as an integer of more than 64 bits."""


class StoreFromFuture(StoreError):
    """The database was written by a newer Palaver."""


class IndexDamaged(PalaverError):
    """A file of an index generation is missing or is not what the manifest says."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}", hint="Run `palaver rebuild` to make the index anew.")


class IndexUnwritable(PalaverError):
    """There is no room for a new index, or no right to write it. The one before stays in use."""

    hint = "Nothing is lost, and search goes on without it. Free some space, then run `palaver archive`."

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the index could not be written: {reason}")


class LeaseHeld(PalaverError):
    """Another process holds the writer's lease."""


class ModelUnavailable(PalaverError):
    """The embedding model is missing, damaged, or its library is not installed."""


class ServerNotReady(PalaverError):
    """What a surface's tools work with cannot be opened; `reason` is why. The next call tries again."""

    def __init__(self, reason: PalaverError) -> None:
        self.reason = reason
        super().__init__("Server not initialized", hint=reason.told)


class TemplateInvalid(PalaverError):
    """A user's template that does not parse or render."""
