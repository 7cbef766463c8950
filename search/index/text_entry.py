"""Text entries: the stretches of items that words find, and what of them is written into the text index."""

from hashlib import blake2b
from operator import attrgetter

import tantivy
from msgspec import Struct

from ...core.query import Role
from ..query.tokenizer import PROSE, expand

NUMBERS = ("key", "event", "source", "ordinal", "start_line", "end_line", "in_code")
BODY = "body"
DIGEST = "digest"
EVERY = "every"
"""A field with the same term in every entry, which counts them as Tantivy does: deleted ones too, until merged."""
SAID_BY, WHOLLY_BY = "said by ", "wholly by"
"""What each of several speakers said has a field of its own, which knows the words but not how often: it filters,
`body` ranks. Where one said all there is, `body` does for both, and another field tells whose it is.
"""
_NUMBERS = attrgetter(*NUMBERS)
_RAW = ("kind", "type", "concept", "file", "project", "session", "branch", "agent", "origin", "role")
"""Fields that are filtered by, and are compared whole."""


class TextEntry(Struct, frozen=True):
    """One findable stretch of an item: what it says, where it stands, and all it can be filtered by.

    `event` is the key of the exchange the item belongs to, `ordinal` its place in its source, `at` 0 when undated.
    `files` are what `path_label` makes of paths, the other filter values what `label` makes of them. `kind` is that of
    the hit it can become.
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
    said: tuple[tuple[str, str], ...] = ()
    """Who said what of the body, for those that can be filtered by."""
    in_code: int = 0
    """1 for a unit of code, 0 for what was said or written."""

    @property
    def digest(self) -> int:
        """64 bits that no other entry has: what was written can be compared with what should be."""
        numbers = _NUMBERS(self)
        labels = (self.concepts, self.files, self.projects, self.sessions, self.branches, self.agents, self.origins)
        told = (numbers, self.at, self.body, self.kind, self.types, labels, self.said)
        from ...archiver.files.json_document import line  # a search makes no entries

        return int.from_bytes(blake2b(line(told), digest_size=8).digest())


def schema() -> tantivy.Schema:
    """The fields of an index."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("key", indexed=True, fast=True)
    for name in NUMBERS[1:]:
        builder.add_unsigned_field(name, fast=True)
    builder.add_unsigned_field(DIGEST, fast=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    for name in (EVERY, WHOLLY_BY, *_RAW):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for role in Role:
        builder.add_text_field(SAID_BY + role, tokenizer_name=PROSE, index_option="basic")
    builder.add_text_field(BODY, tokenizer_name=PROSE, index_option="position")
    return builder.build()


def document(entry: TextEntry) -> tantivy.Document:
    """What is written of an entry."""
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
    }
    for role, text in entry.said:
        if text == entry.body:
            written.add_text(WHOLLY_BY, role)
        else:
            written.add_text(SAID_BY + role, expand(text))
    for name, values in repeated.items():
        for value in values:
            written.add_text(name, value)
    return written
