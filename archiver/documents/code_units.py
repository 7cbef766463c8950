"""Units of source code: functions, classes, methods, interfaces, types, enumerations and constants."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from .code_languages import CodeLanguage

if TYPE_CHECKING:
    from tree_sitter import Node

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
    found: dict[tuple[int, int], _Candidate] = {}
    for pattern, captures in QueryCursor(query).matches(root):
        if kind := next((name for name in captures if name in _KINDS), ""):
            node = captures[kind][0]
            place = node.start_byte, node.end_byte
            if place not in found or pattern < found[place].pattern:
                found[place] = _Candidate(pattern, kind, node, captures)
        else:
            source.note(captures)
    ordered = [found[place] for place in sorted(found, key=lambda place: (place[0], -place[1]))]
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
        end = max(_end(each) for each in (node, *captures.get("doc", ())))
        signature = self._signature(outer, node, captures.get("body"))
        return CodeUnit(start, end, kind, name, signature, doc[:_DOC], (start + 1, end))

    def _doc(self, candidate: _Candidate, comments: "list[Node]") -> str:
        """Return the text of the documentation string of a unit, or else of the comments above it."""
        node = candidate.node
        strings = candidate.captures.get("doc")
        string = strings[0] if strings else self._documented.get((node.start_byte, node.end_byte))
        if string is not None:
            return _string_text(self._text(string))
        return _comment_text("\n".join(self._text(each).rstrip() for each in comments))

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
