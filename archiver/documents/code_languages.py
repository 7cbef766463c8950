"""Programming languages, with their grammars and the queries that find units.

A query is written in tree-sitter's query language, in a file of the folder `units`. These captures name the kinds of
units: `@function`, `@class`, `@method`, `@interface`, `@type`, `@enum` and `@constant`.

In the same pattern, four captures describe the unit:

- `@name` is its name.
- `@owner` is the name of its parent, if the parent does not enclose the unit.
- `@body` is the node before which the signature ends.
- `@doc` is its documentation string.

A pattern with `@documented` and `@doc` adds a documentation string to a unit that another pattern finds. `@comment` and
`@attribute` mark nodes that may precede a unit. If several patterns match a unit, the first one counts.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

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
