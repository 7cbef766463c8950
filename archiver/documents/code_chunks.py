"""Chunks of source code: one or more for each unit, such as a function, and others for the lines between units.

A query in tree-sitter's query language, in a file of the folder `units`, finds the units of a language. These
captures name the kinds of units: `@function`, `@class`, `@method`, `@interface`, `@type`, `@enum` and `@constant`. In
the same pattern, `@name` is the unit's name and `@doc` its documentation string. `@owner` is the name of its parent,
if the parent does not enclose the unit. `@body` is the node before which the signature ends.

A pattern with `@documented` and `@doc` adds a documentation string to a unit that another pattern finds. `@comment`
and `@attribute` mark nodes that may precede a unit. If several patterns match a unit, the first one counts.
"""

import inspect
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core import tokens
from ...core.document import Chunk, ChunkKind
from .document_reader import CHUNKS_MAX, PROSE_MAX, windows

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_QUERIES: Final = Path(__file__).with_name("units")


class CodeLanguage(NamedTuple):
    """Programming language: its name, the Python package and function with its grammar, and its query files."""

    name: str
    package: str
    queries: tuple[str, ...]
    grammar: str = "language"

    def load(self) -> "tuple[Parser, Query]":
        """Return the parser and the query. Later calls return the same objects."""
        return _load(self)


@cache
def _load(language: CodeLanguage) -> "tuple[Parser, Query]":
    from tree_sitter import Language, Parser, Query

    pointer: object = getattr(import_module(language.package), language.grammar)()
    grammar = Language(pointer)
    source = "\n".join((_QUERIES / f"{name}.scm").read_text("utf-8") for name in language.queries)
    return Parser(grammar), Query(grammar, source)


_C: Final = CodeLanguage("c", "tree_sitter_c", ("c",))
_CPP: Final = CodeLanguage("cpp", "tree_sitter_cpp", ("cpp", "c"))
_TYPESCRIPT: Final = CodeLanguage(
    "typescript", "tree_sitter_typescript", ("typescript", "ecmascript"), "language_typescript"
)
_LANGUAGES: Final = {
    CodeLanguage("python", "tree_sitter_python", ("python",)): ".py .pyi",
    CodeLanguage("javascript", "tree_sitter_javascript", ("javascript", "ecmascript")): ".js .mjs .cjs .jsx",
    _TYPESCRIPT: ".ts .mts .cts",
    _TYPESCRIPT._replace(grammar="language_tsx"): ".tsx",
    CodeLanguage("go", "tree_sitter_go", ("go",)): ".go",
    CodeLanguage("rust", "tree_sitter_rust", ("rust",)): ".rs",
    CodeLanguage("java", "tree_sitter_java", ("java",)): ".java",
    _C: ".c",
    # A header may be C or C++. The grammar of C++ reads nearly all of C.
    _CPP._replace(name="c"): ".h",
    _CPP: ".cc .cpp .cxx .hh .hpp .hxx",
    CodeLanguage("csharp", "tree_sitter_c_sharp", ("c_sharp",)): ".cs",
    CodeLanguage("ruby", "tree_sitter_ruby", ("ruby",)): ".rb",
    CodeLanguage("php", "tree_sitter_php", ("php",), "language_php"): ".php",
    CodeLanguage("kotlin", "tree_sitter_kotlin", ("kotlin",)): ".kt .kts",
    CodeLanguage("swift", "tree_sitter_swift", ("swift",)): ".swift",
    CodeLanguage("bash", "tree_sitter_bash", ("bash",)): ".sh .bash",
}
CODE_LANGUAGES: Final = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()}
"""Language of each file suffix, such as `.py`."""


CONTAINERS: Final = frozenset({"class", "interface", "enum"})
"""Kinds of units that can contain methods."""
_KINDS: Final = CONTAINERS | {"function", "method", "type", "constant"}
_WRAPPERS: Final = frozenset(
    "ambient_declaration const_declaration decorated_definition export_statement expression_statement"
    " lexical_declaration template_declaration type_declaration variable_declaration".split()
)
"""Types of syntax nodes that enclose a unit and belong to it, for example with its decorators or its `export`."""
_SIGNATURE: Final = 300
_DOC: Final = 4_000
"""Maximum characters of a signature and of a documentation comment."""
_BROKEN: Final = 5_000
"""Maximum number of child nodes of a syntax error. In a file with more, a query would take quadratic time."""
_DEPTH: Final = 32
"""Maximum depth of nested units. Deeper units belong to their parent."""
_END_SIGN: Final = re.compile(r"\s*(?:=>|[:=;])$")
_TYPE_ARGUMENTS: Final = re.compile(r"(?<!operator)<[^<>]*>")
_COMMENT_SIGNS: Final = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*(?!\S)|//+!?|#+!?)?|[ \t]*\*+/[ \t]*$", re.MULTILINE)
_STRING: Final = re.compile(r"""[A-Za-z]*('{3}|"{3}|'|")(.*)\1""", re.DOTALL)


class CodeUnit(NamedTuple):
    """Unit of code, such as a function, and the units inside it.

    `start` and `end` are 0-based rows, and `end` is exclusive. If a unit is split, they are the rows of one part.
    `lines` are always the first and the last line (1-based) of the whole unit.
    """

    start: int
    end: int
    kind: str
    name: str = ""
    signature: str = ""
    doc: str = ""
    lines: tuple[int, int] = (0, 0)
    inside: "tuple[CodeUnit, ...]" = ()


class _Candidate(NamedTuple):
    """Syntax node that a query pattern recognises as a unit, with the other captures of the match."""

    pattern: int
    kind: str
    node: "Node"
    captures: "Mapping[str, list[Node]]"


class _Open(NamedTuple):
    """Unit whose inner units are still being collected, and the position at which the unit ends."""

    unit: CodeUnit
    end_byte: int
    inside: list[CodeUnit]


def units(text: str, language: CodeLanguage) -> tuple[list[CodeUnit], bool]:
    """Return the outermost units of a file, and whether the file is free of syntax errors."""
    from tree_sitter import QueryCursor

    parser, query = language.load()
    data = text.encode("utf-8", "replace")
    root = parser.parse(data).root_node
    if any(child.is_error and child.child_count > _BROKEN for child in [root, *root.children]):
        return [], False
    source = _Source(data)
    candidates: dict[tuple[int, int], _Candidate] = {}
    for pattern, captures in QueryCursor(query).matches(root):
        if kind := next((name for name in captures if name in _KINDS), ""):
            node = captures[kind][0]
            span = node.start_byte, node.end_byte
            if span not in candidates or pattern < candidates[span].pattern:
                candidates[span] = _Candidate(pattern, kind, node, captures)
        else:
            source.note(captures)
    ordered = [candidates[place] for place in sorted(candidates, key=lambda span: (span[0], -span[1]))]
    return _nested(ordered, source), not root.has_error


def _nested(candidates: Iterable[_Candidate], source: "_Source") -> list[CodeUnit]:
    """Return the outermost units with the units inside them. `candidates` are ordered by their position."""
    outermost: list[CodeUnit] = []
    stack: list[_Open] = []

    def close(until: int) -> None:
        while stack and stack[-1].end_byte <= until:
            unit, _, inside = stack.pop()
            (stack[-1].inside if stack else outermost).append(unit._replace(inside=tuple(inside)))

    for candidate in candidates:
        close(candidate.node.start_byte)
        parent = stack[-1].unit if stack else None
        if len(stack) < _DEPTH and (parent is None or _separate(candidate, parent)):
            stack.append(_Open(source.unit(candidate, parent), candidate.node.end_byte, []))
    close(len(source.data))
    return outermost


def _separate(candidate: _Candidate, parent: CodeUnit) -> bool:
    """Return whether a unit inside another unit is stored separately.

    Enumeration values, and units inside a type or a constant, are not stored separately.
    """
    return parent.kind not in {"type", "constant"} and (candidate.kind, parent.kind) != ("constant", "enum")


class _Source:
    """Bytes of a file, with the comments and attributes that may precede a unit."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._lines = data.split(b"\n")
        self._documented: dict[tuple[int, int], Node] = {}
        self._preceding: dict[int, tuple[int, Node, bool]] = {}
        """Comments and attributes by their last row. The values are the first row, the node, and True for a comment."""

    def note(self, captures: "Mapping[str, list[Node]]") -> None:
        """Record the comments, attributes and documentation strings of a match, which `unit` uses to describe units."""
        for node in captures.get("documented", ()):
            self._documented[node.start_byte, node.end_byte] = captures["doc"][0]
        for name in ("comment", "attribute"):
            for node in captures.get(name, ()):
                row, column = node.start_point
                if not self._lines[row][:column].strip():
                    self._preceding[_end(node) - 1] = row, node, name == "comment"

    def unit(self, candidate: _Candidate, parent: CodeUnit | None) -> CodeUnit:
        """Return the unit of a match."""
        node, captures = candidate.node, candidate.captures
        outer = _outer(node)
        name, owner = self._name(captures)
        kind = "method" if candidate.kind == "function" and owner else candidate.kind
        if parent and not owner:
            kind = "method" if kind == "function" and parent.kind in CONTAINERS else kind
            name = f"{parent.name}.{name}"
        start, comments = self._with_preceding(outer.start_point.row)
        doc = self._doc(candidate, comments)
        end = max(_end(unit) for unit in (node, *captures.get("doc", ())))
        signature = self._signature(outer, node, captures.get("body"))
        return CodeUnit(start, end, kind, name, signature, doc[:_DOC], (start + 1, end))

    def _doc(self, candidate: _Candidate, comments: "list[Node]") -> str:
        """Return the text of the documentation string of a unit, or else of the comments above it."""
        node = candidate.node
        strings = candidate.captures.get("doc")
        string = strings[0] if strings else self._documented.get((node.start_byte, node.end_byte))
        if string is not None:
            return _string_text(self._text(string))
        return _comment_text("\n".join(self._text(comment).rstrip() for comment in comments))

    def _name(self, captures: "Mapping[str, list[Node]]") -> tuple[str, str]:
        """Return the name of a unit, and the name of its owner if the unit is defined outside its owner.

        With an owner, the name of the unit is `OWNER.NAME`, such as `Clock.tick` for the C++ method `Clock::tick`.
        Without one, the owner is an empty string.
        """
        name = _TYPE_ARGUMENTS.sub("", self._text(captures["name"][0])).strip("\"'")
        *scopes, _ = name.split("::")
        owner = ".".join([self._text(node) for node in captures.get("owner", ())] or scopes)
        plain = name.rpartition("::")[2]
        return (f"{owner}.{plain}" if owner else plain), owner

    def _with_preceding(self, start: int) -> "tuple[int, list[Node]]":
        """Return the first row of the comments and attributes directly above a unit, and the comments."""
        comments: list[Node] = []
        while (above := self._preceding.get(start - 1)) is not None:
            start, node, is_comment = above
            if is_comment:
                comments.append(node)
        return start, comments[::-1]

    def _signature(self, outer: "Node", node: "Node", bodies: "list[Node] | None") -> str:
        """Return the declaration of a unit on one line, without decorators and body."""
        start = max([outer.start_byte, *(child.end_byte for child in outer.children if child.type == "decorator")])
        body = bodies[0] if bodies else node.child_by_field_name("body") or next(_body_children(node), None)
        end = body.start_byte if body else node.end_byte
        comments = (child.start_byte for child in node.children if child.type.endswith("comment"))
        end = min([end, start + 8 * _SIGNATURE, *(byte for byte in comments if byte > start)])
        return _END_SIGN.sub("", " ".join(self.data[start:end].decode("utf-8", "replace").split()))[:_SIGNATURE]

    def _text(self, node: "Node") -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _outer(node: "Node") -> "Node":
    """Return the outermost node that contains only this unit, for example with its decorators or its `export`."""
    while (parent := node.parent) is not None and parent.type in _WRAPPERS and _end(parent) == _end(node):
        node = parent
    return node


def _body_children(node: "Node") -> "Iterator[Node]":
    return (child for child in node.named_children if child.type.endswith("body"))


def _end(node: "Node") -> int:
    """Return the number of the row after a node. A line break that a grammar includes in a comment is not counted."""
    row, column = node.end_point
    return row if column == 0 and row > node.start_point.row else row + 1


def _string_text(literal: str) -> str:
    """Return the text of a documentation string."""
    match = _STRING.fullmatch(literal.strip())
    return inspect.cleandoc(match[2] if match else literal)


def _comment_text(comment: str) -> str:
    """Return the text of a comment without the characters that mark it."""
    return inspect.cleandoc(_COMMENT_SIGNS.sub("", comment)).strip()


_TOKENS: Final = 512
"""Approximate maximum tokens of a chunk. A larger unit is split into its inner units, or else into blocks."""
_BLOCK: Final = 100
"""Maximum lines of a block."""
_CHARACTERS: Final = 4_000
"""Maximum characters of a chunk, because a single line, such as literal data, can be very long."""
_PARSED: Final = 4 << 20
"""Maximum characters of a file that is parsed. Parsing takes about 70 times the memory of the file."""
_CLOSING: Final = re.compile(r"(?:[\s)}\];,]|\bend\b)*")


def chunks(text: str, language: CodeLanguage) -> list[Chunk]:
    """Return the chunks of a file. Together they contain every line that is not blank.

    If no unit is found because the file is too large or has syntax errors, the file is split like prose. Its chunks
    then have no `unit`. A file with too many units is split like prose too, unless the members of small classes are the
    reason, which then share a chunk.
    """
    parts, document = units(text, language) if len(text) <= _PARSED else ([], False)
    if not (parts or document):
        return text_chunks(text)
    rows = _Rows(text.split("\n"))
    module = CodeUnit(0, len(rows.texts), "module")
    covering = _with_gaps(parts, module, rows)
    for containers in (CONTAINERS, frozenset[str]()):
        split = [chunk for unit in covering for chunk in _chunks(unit, rows, containers)]
        if len(split) <= CHUNKS_MAX:
            return split
    return text_chunks(text)


def text_chunks(text: str, kind: ChunkKind = ChunkKind.CODE) -> list[Chunk]:
    """Split a text that cannot be parsed into overlapping chunks, like prose: at most one more than `CHUNKS_MAX`."""
    pieces = islice(windows(text[:PROSE_MAX]), CHUNKS_MAX + 1)
    return [Chunk(piece, kind, start, end) for piece, start, end in pieces]


class _Rows:
    """Lines of a file, with methods for the length and the token count of a range of lines."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._lengths = [0, *accumulate(len(text) + 1 for text in texts)]

    def join(self, start: int, end: int) -> str:
        return "\n".join(self.texts[start:end])

    def length(self, start: int, end: int) -> int:
        return self._lengths[end] - self._lengths[start]

    def tokens(self, start: int, end: int) -> int:
        """Return the number of tokens in a range of lines. For a short range, return an upper bound, which is faster.

        Code has at most one token per two characters.
        """
        length = self.length(start, end)
        return length // 2 if length <= 2 * _TOKENS else tokens.count(self.join(start, end))


def _with_gaps(parts: Sequence[CodeUnit], document: CodeUnit, rows: _Rows) -> list[CodeUnit]:
    """Return units that together contain every line of `document`.

    The lines between the found units become copies of `document` with these lines. Lines that contain only closing
    brackets are added to the unit before them instead. A unit inside the lines of the previous unit is left out.
    """
    covering: list[CodeUnit] = []
    start, doc = document.start, document.doc
    for unit in [*parts, CodeUnit(document.end, document.end, "")]:
        if unit.start > start:
            if covering and _CLOSING.fullmatch(rows.join(start, unit.start)):
                covering[-1] = covering[-1]._replace(end=unit.start)
            else:
                covering.append(document._replace(start=start, end=unit.start, doc=doc, inside=()))
                doc = ""
        if unit.end > max(unit.start, start):
            covering.append(unit._replace(start=max(unit.start, start)))
        start = max(start, unit.end)
    return covering


def _chunks(unit: CodeUnit, rows: _Rows, containers: Container[str]) -> Iterator[Chunk]:
    """Yield the chunks of a unit. A unit of a kind in `containers` is split into its inner units, even a small one."""
    size = 0 if unit.inside and unit.kind in containers else rows.tokens(unit.start, unit.end)
    large = size > _TOKENS or unit.end - unit.start > _BLOCK
    if unit.inside and (large or unit.kind in containers):
        if unit.inside[0].start == unit.start:  # Otherwise, no chunk would have the name of the unit.
            yield from _chunks(unit._replace(end=unit.start + 1, inside=()), rows, containers)
            unit = unit._replace(doc="")
        for inside in _with_gaps(unit.inside, unit, rows):
            yield from _chunks(inside, rows, containers)
        return
    doc = unit.doc
    for start, end in _blocks(unit, size, rows) if large else [(unit.start, unit.end)]:
        first = next((index for index in range(start, end) if rows.texts[index].strip()), None)
        if first is None:
            continue
        text = rows.join(first, end).rstrip()
        last = first + text.count("\n") + 1
        for cut in range(0, len(text), _CHARACTERS):
            piece = text[cut : cut + _CHARACTERS]
            yield Chunk(
                piece,
                ChunkKind.CODE,
                first + 1,
                last,
                unit=unit.kind,
                name=unit.name,
                signature=unit.signature,
                doc=doc,
                unit_start=unit.lines[0],
                unit_end=unit.lines[1],
            )
            doc = ""


def _blocks(unit: CodeUnit, size: int, rows: _Rows) -> Iterator[tuple[int, int]]:
    """Split a unit of `size` tokens into blocks, and yield the first row and the end row (exclusive) of each block.

    The number of tokens of a block is estimated from its number of characters. A block has at least one row.
    """
    longest = rows.length(unit.start, unit.end) * _TOKENS // max(size, 1)
    start = unit.start
    for index in range(unit.start + 1, unit.end):
        if rows.length(start, index + 1) > longest or index - start == _BLOCK:
            yield start, index
            start = index
    yield start, unit.end
