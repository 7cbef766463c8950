"""Tests of code search: symbols by name, lines by exact text, and units by meaning."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Document, Store
from palaver.core.document import Chunk, ChunkKind, DocumentFilter, SymbolMatch
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.search.code_search import CodeSearch
from palaver.search.document_library import DocumentLibrary
from palaver.search.index.generation import Generations

from ..cases import for_each
from .fake_embedder import FakeEmbedder

PYTHON = '''import os


class Kiln:
    """Heat clay."""

    def heat(self, degrees):
        """Raise the temperature slowly."""
        return degrees + 1

    def open(self):
        return os.open("door")


def heat_all(kilns):
    for kiln in kilns:
        kiln.heat(900)


def parse_args(argv):
    return argv
'''
SCRIPT = """export class KilnView {
  open() {
    return "100%_done";
  }
}

export function parseArgs(argv) {
  return argv;
}
"""
NAMES = ("Kiln", "Kiln.heat", "heat_all", "parse_args", "parseArgs", "heat", "open", "kilnn", "arg", "zzz", "Kiln.open")
FILTERS = (
    DocumentFilter(languages=("python",)),
    DocumentFilter(languages=("JavaScript",)),
    DocumentFilter(pattern="src/**/*.js"),
    DocumentFilter(pattern="*/web/*"),
    DocumentFilter(units=("method",)),
    DocumentFilter(units=("class",), languages=("python",)),
    DocumentFilter(namespaces=("other",)),
    DocumentFilter(kinds=(ChunkKind.DOCUMENT,)),
    DocumentFilter(under=Path("/nowhere")),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentLibrary]:
    """Return a library with two files of code and one of prose."""
    folder = tmp_path_factory.mktemp("project") / "src"
    (folder / "web").mkdir(parents=True)
    (folder / "kiln.py").write_text(PYTHON)
    (folder / "web" / "view.js").write_text(SCRIPT)
    (folder / "notes.md").write_text("# Kiln\n\nCall heat_all(kilns) after open.\n")
    home = Home(tmp_path_factory.mktemp("home"))
    home.make()
    with Store.create(home.database) as store:
        roots = DocumentRoots([folder])
        found = DocumentLibrary(store, Generations(home.index), FakeEmbedder(), Redactor(b"k" * 32), roots)
        found.index_directory(folder, async_mode=False)
        yield found


@pytest.fixture
def code(library: DocumentLibrary) -> CodeSearch:
    return library.code


def names(code: CodeSearch, name: str, wanted: DocumentFilter | None = None, limit: int = 50) -> list[str]:
    return [each.name for each in code.symbols(name, wanted, limit=limit).symbols]


@pytest.mark.parametrize(
    ("name", "first", "match"),
    [
        ("Kiln", "Kiln", SymbolMatch.EXACT),
        ("kiln", "Kiln", SymbolMatch.EXACT),
        ("heat", "Kiln.heat", SymbolMatch.EXACT),
        ("Kiln.heat", "Kiln.heat", SymbolMatch.EXACT),
        ("KilnView::open", "KilnView.open", SymbolMatch.EXACT),
        ("Kiln#open()", "Kiln.open", SymbolMatch.EXACT),
        ("kiln.Kiln.open", "Kiln.open", SymbolMatch.EXACT),
        ("web.view.KilnView.open", "KilnView.open", SymbolMatch.EXACT),
        ("parse_args", "parse_args", SymbolMatch.EXACT),
        ("parseArgs", "parseArgs", SymbolMatch.EXACT),
        ("KilnV", "KilnView", SymbolMatch.PREFIX),
        ("args", "parseArgs", SymbolMatch.PART),
        ("prase_args", "parseArgs", SymbolMatch.SIMILAR),
    ],
)
def test_the_best_match_of_a_name_is_first(code: CodeSearch, name: str, first: str, match: SymbolMatch) -> None:
    """A name is found in the spelling of any language, alone or qualified by units and modules."""
    [best, *_] = code.symbols(name).symbols

    assert (best.name, best.match) == (first, match)


def test_exact_names_come_before_longer_names(code: CodeSearch) -> None:
    """Equal spelling is first, then equal names, then names that begin with the text."""
    assert names(code, "parse_args") == ["parse_args", "parseArgs"]
    assert names(code, "heat") == ["Kiln.heat", "heat_all"]
    assert code.symbols("heat", limit=1).limited


def test_a_symbol_has_its_place_and_declaration(code: CodeSearch) -> None:
    """A symbol names its file, its lines, its signature and its documentation."""
    [found] = code.symbols("Kiln.heat").symbols[:1]

    assert (found.unit, found.source_file.name, found.language) == ("method", "kiln.py", "python")
    assert (found.start_line, found.end_line, found.signature) == (7, 9, "def heat(self, degrees)")
    assert found.doc == "Raise the temperature slowly."


def test_a_class_has_the_lines_of_its_whole_body(code: CodeSearch) -> None:
    """A class ends at its last line, and its methods keep their own lines."""
    lines = {each.name: (each.start_line, each.end_line) for each in code.symbols("Kiln.open", limit=50).symbols}
    lines |= {each.name: (each.start_line, each.end_line) for each in code.symbols("Kiln").symbols}

    assert (lines["Kiln"], lines["Kiln.open"], lines["KilnView"]) == ((4, 12), (11, 12), (1, 5))


def test_units_with_equal_names_and_signatures_are_two(tmp_path: Path) -> None:
    """Two functions of one file with equal declarations are two symbols, each with its own lines."""
    for name in ("src", "home"):
        (tmp_path / name).mkdir()
    file = tmp_path / "src" / "a.py"
    twice = "if fast:\n    def heat(kiln):\n        return 1\nelse:\n    def heat(kiln):\n        return 2\n"
    file.write_text(twice)
    with Store.create(tmp_path / "home" / "palaver.db") as store:
        ingest, roots = DocumentIngest(store, Redactor(b"k" * 32)), DocumentRoots([tmp_path])
        assert ingest.index_file(file, "default", roots).units == 2
        code = CodeSearch(store, lambda: pytest.fail("symbols need no index"))
        assert [(each.start_line, each.end_line) for each in code.symbols("heat").symbols] == [(2, 3), (5, 6)]

        file.write_text(f"import fast\n\n{twice}")
        ingest.index_file(file, "default", roots)
        assert [(each.start_line, each.end_line) for each in code.symbols("heat").symbols] == [(4, 5), (7, 8)]


@for_each("name, wanted", product(NAMES, FILTERS))
def test_a_filter_never_adds_results(code: CodeSearch, name: str, wanted: DocumentFilter) -> None:
    """Every filtered symbol, line and unit is also found without the filter, which is then for all code."""
    lines = {(each.source_file, each.line) for each in code.lines(name, limit=50).lines}
    some = {(each.source_file, each.line) for each in code.lines(name, wanted, limit=50).lines}
    units = {each.stored.key for each in code.units(name, limit=50)}
    fewer = {each.stored.key for each in code.units(name, wanted, limit=50)}
    every = set(code.symbols(name, limit=50).symbols)

    assert some <= lines or wanted.kinds
    assert fewer <= units or wanted.kinds
    assert set(code.symbols(name, wanted, limit=50).symbols) <= every


def test_lines_are_numbered_and_have_context(code: CodeSearch) -> None:
    """A literal text is found on its line, in any case, with the lines around it from other chunks."""
    [found] = code.lines("PARSE_ARGS(", context=2).lines

    assert (found.line, found.text, found.name) == (20, "def parse_args(argv):", "parse_args")
    assert (found.before, found.after) == (("", ""), ("    return argv",))
    assert PYTHON.split("\n")[found.line - 1] == found.text


def test_literal_signs_have_no_meaning(code: CodeSearch) -> None:
    """Signs of patterns match themselves, and prose is not searched without its kind."""
    assert [each.text.strip() for each in code.lines("100%_d").lines] == ['return "100%_done";']
    assert not code.lines("1%0").lines
    assert {each.source_file.suffix for each in code.lines("heat_all").lines} == {".py"}
    prose = DocumentFilter(kinds=(ChunkKind.DOCUMENT,))
    assert [each.line for each in code.lines("heat_all", prose).lines] == [3]


def test_a_description_finds_a_unit(code: CodeSearch) -> None:
    """Words of a name and of a comment find a unit, and only code is returned."""
    found = [each.stored.chunk for each in code.units("raise the temperature")]

    assert found[0].name == "Kiln.heat"
    assert {chunk.kind for chunk in found} == {ChunkKind.CODE}
    assert code.units("parse args")[0].stored.chunk.name in {"parse_args", "parseArgs"}


@pytest.mark.parametrize("bad", ["", "  ", "...", "()"])
def test_a_name_needs_a_letter(code: CodeSearch, bad: str) -> None:
    """A name without a letter or digit is an error."""
    with pytest.raises(InvalidInput, match="Invalid name"):
        code.symbols(bad)


def test_lines_need_a_text_within_one_line(code: CodeSearch) -> None:
    """An empty text, a text of two lines and numbers out of range are errors."""
    for text, limit, context in (("", 1, 1), ("a\nb", 1, 1), ("a", 1, 99), ("a", 0, 1)):
        with pytest.raises(InvalidInput):
            code.lines(text, limit=limit, context=context)


@given(
    drawn=st.lists(
        st.from_regex(r"[A-Za-z_]{1,6}(\.[a-zA-Z_]{1,6}){0,2}", fullmatch=True).filter(lambda each: each.strip("_.")),
        min_size=1,
        max_size=12,
        unique=True,
    )
)
def test_an_exact_name_is_always_first(drawn: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """For any set of names, the search for one of them returns it first."""
    with Store.create(tmp_path_factory.mktemp("store") / "palaver.db") as store:
        units = [
            Chunk(f"def {name}", ChunkKind.CODE, line, line, unit="function", name=name, signature=f"def {name}")
            for line, name in enumerate(drawn, 1)
        ]
        with store.transaction():
            store.documents.replace(Document(Path("/p/a.py"), "default", "python", b"1", 7), units)
        code = CodeSearch(store, lambda: pytest.fail("symbols need no index"))

        for name in drawn:
            if name.rpartition(".")[2].strip("_"):
                assert names(code, name)[:1] == [name]


def test_a_limit_keeps_the_best_of_many_units_with_one_name(tmp_path: Path) -> None:
    """Units with one name have the same order with every limit: spelling, kind, depth, length and place."""
    kinds = ("method", "class", "function", "constant", "struct")
    drawn = [*("Run", "run", "Kiln.run", "A.B.run", "_run", "Kiln.Run") * 4]
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            for at, name in enumerate(drawn):
                place: dict[str, Any] = {
                    "unit": kinds[at % len(kinds)],
                    "name": name,
                    "unit_start": at + 1,
                    "unit_end": at + 1,
                }
                chunk = Chunk(f"{at}", ChunkKind.CODE, at + 1, at + 1, signature=f"{at}", **place)
                path = Path(f"/p/{at % 3}.py")
                store.documents.replace(Document(path, f"space-{at}", "python", b"1", 7), [chunk])
        code = CodeSearch(store, lambda: pytest.fail("symbols need no index"))
        for name in ("run", "Run", "x.run"):
            every = code.symbols(name, limit=50).symbols
            assert len(every) == len(drawn)
            for limit in (1, 5, 12):
                assert code.symbols(name, limit=limit).symbols == every[:limit]


def test_every_line_of_a_notebook_is_found(tmp_path: Path) -> None:
    """Lines without a number are all found, also if several of one file match."""
    with Store.create(tmp_path / "palaver.db") as store:
        cells = [Chunk(f"x = kiln\nkiln({number})", ChunkKind.CODE, unit="cell") for number in range(2)]
        with store.transaction():
            store.documents.replace(Document(Path("/p/y.ipynb"), "default", "notebook", b"1", 7), cells)
        found = CodeSearch(store, lambda: pytest.fail("lines need no index")).lines("kiln").lines

    assert [(each.line, each.text) for each in found] == [
        (0, "x = kiln"),
        (0, "kiln(0)"),
        (0, "x = kiln"),
        (0, "kiln(1)"),
    ]


@pytest.mark.parametrize("before", [0, 150, 250, 900])
@pytest.mark.parametrize("after", [0, 40, 900])
def test_a_long_line_is_cut_around_the_text(before: int, after: int, tmp_path: Path) -> None:
    """A shown part of a long line contains the text and has at most 200 characters."""
    row = "a" * before + "Kiln.heat" + "b" * after
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            chunks = [Chunk(row, ChunkKind.CODE, 1, 1)]
            store.documents.replace(Document(Path("/p/a.py"), "default", "python", b"1", 7), chunks)
        [found] = CodeSearch(store, lambda: pytest.fail("lines need no index")).lines("kiln.heat").lines

    assert "Kiln.heat" in found.text
    assert len(found.text) == min(200, len(row))
    assert found.text.strip("…") in row


def test_a_qualified_beginning_is_found_among_many(tmp_path: Path) -> None:
    """The beginning of a method's name is found in its class, whatever other classes have."""
    drawn = [*(f"A{number}.op" for number in range(20)), *(f"B{number}.open" for number in range(300))]
    units = [
        Chunk(f"def {name}", ChunkKind.CODE, line, line, unit="method", name=name, signature=f"def {name}")
        for line, name in enumerate([*drawn, "KilnWithALongName.open_door"], 1)
    ]
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            store.documents.replace(Document(Path("/p/a.py"), "default", "python", b"1", 7), units)
        code = CodeSearch(store, lambda: pytest.fail("symbols need no index"))

        assert names(code, "KilnWithALongName.op") == ["KilnWithALongName.open_door"]
