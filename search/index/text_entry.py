"""Text entries, which are the searchable pieces of items, and the writer that adds entries to a Tantivy index."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from hashlib import blake2b
from operator import attrgetter
from typing import Self

import tantivy
from msgspec import Struct

from ...archiver.files.json_document import line
from ...core.errors import IndexUnwritable
from ...core.query import Role
from ..query.tokenizer import PROSE, expand

NUMBERS = ("key", "event", "source", "ordinal", "start_line", "end_line", "in_code")
BODY = "body"
DIGEST = "digest"
EVERY = "every"
"""Field that contains the same term in every entry. The document frequency of this term is the number of entries."""
ROLE_TEXT, SOLE_ROLE = "said by ", "wholly by"
"""Prefix of the fields that contain the text of one role, and field for entries that one role wrote alone.

The role filter uses these fields. If several roles wrote an entry, the text of each role has its own field, without
term frequencies. If one role wrote the whole entry, `SOLE_ROLE` contains this role, and the filter searches the field
`body`. Ranking always uses `body`.
"""
_HEAP = 32_000_000
"""Memory for the index writer in bytes."""
_NUMBERS = attrgetter(*NUMBERS)
_RAW = (
    "kind",
    "type",
    "concept",
    "file",
    "project",
    "session",
    "branch",
    "agent",
    "origin",
    "role",
    "language",
    "unit",
)
"""Filter fields. Their values are not tokenized, so a filter compares whole values."""


class TextEntry(Struct, frozen=True):
    """Searchable piece of an item: its text, its location, and its filter values.

    Attributes:
        event: Key of the exchange that the item belongs to. For a memory or document chunk, its own key.
        ordinal: Position of the exchange in its source file.
        at: Time of the item in milliseconds since 1970, or 0 if unknown.
        kind: Kind of the item, such as `exchange`, `observation` or `memory`.
        files: Paths normalised by `path_label`. Other filter values are normalised by `label`.
        languages: Programming or markup language of a document.
        units: Kind of a unit of code, such as `function`.
        said: (role, text) pairs for the role filter.
        in_code: 1 for a chunk of code, otherwise 0.
    """

    key: int
    event: int
    source: int
    ordinal: int
    at: int
    start_line: int
    end_line: int
    body: str
    kind: str = "exchange"
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    in_code: int = 0

    @property
    def digest(self) -> int:
        """64-bit digest of the content, used to compare the index with the store."""
        labels = (self.concepts, self.files, self.projects, self.sessions, self.branches, self.agents, self.origins)
        code = (self.languages, self.units)
        content = (_NUMBERS(self), self.at, self.body, self.kind, self.types, labels, code, self.said)
        return int.from_bytes(blake2b(line(content), digest_size=8).digest())


def schema() -> tantivy.Schema:
    """Return the schema of a text index."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("key", indexed=True, fast=True)
    for name in NUMBERS[1:]:
        builder.add_unsigned_field(name, fast=True)
    builder.add_unsigned_field(DIGEST, fast=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    for name in (EVERY, SOLE_ROLE, *_RAW):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for role in Role:
        builder.add_text_field(ROLE_TEXT + role, tokenizer_name=PROSE, index_option="basic")
    builder.add_text_field(BODY, tokenizer_name=PROSE, index_option="position")
    return builder.build()


def document(entry: TextEntry) -> tantivy.Document:
    """Return the Tantivy document of an entry."""
    written = tantivy.Document()
    for name in NUMBERS:
        written.add_unsigned(name, getattr(entry, name))
    written.add_unsigned(DIGEST, entry.digest)
    written.add_integer("at", entry.at)
    written.add_text(EVERY, EVERY)
    written.add_text("kind", entry.kind)
    written.add_text(BODY, expand(entry.body))
    repeated = {
        "type": entry.types,
        "concept": entry.concepts,
        "file": entry.files,
        "project": entry.projects,
        "session": entry.sessions,
        "branch": entry.branches,
        "agent": entry.agents,
        "origin": entry.origins,
        "role": tuple(role for role, _ in entry.said),
        "language": entry.languages,
        "unit": entry.units,
    }
    for role, text in entry.said:
        if text == entry.body:
            written.add_text(SOLE_ROLE, role)
        else:
            written.add_text(ROLE_TEXT + role, expand(text))
    for name, values in repeated.items():
        for value in values:
            written.add_text(name, value)
    return written


class TextWriter:
    """Writer of changes to an index. `finish` makes all changes visible at once. Without it, they are discarded."""

    def __init__(self, index: tantivy.Index) -> None:
        self._schema = index.schema
        with writing():
            self._writer = index.writer(_HEAP, num_threads=1)

    def replace(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> Self:
        """Remove all entries of the items `gone`, then add `entries`. Raises `IndexUnwritable`."""
        # Delete by query: tantivy 0.27 converts a Python int to a signed term, which never matches unsigned fields.
        query = tantivy.Query.term_set_query(self._schema, "key", list(gone))
        with writing():
            self._writer.delete_documents_by_query(query)
        for entry in entries:
            with writing():
                self._writer.add_document(document(entry))
        return self

    def finish(self) -> None:
        """Commit all changes. Raises `IndexUnwritable`."""
        with writing():
            self._writer.commit()
            self._writer.wait_merging_threads()


@contextmanager
def writing() -> Generator[None]:
    """Convert a `ValueError` of Tantivy to `IndexUnwritable`. During a write, only disk errors cause `ValueError`."""
    try:
        yield
    except ValueError as error:
        raise IndexUnwritable(str(error)) from error
