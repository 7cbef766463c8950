"""Do the walls stand where ARCHITECTURE.md draws them?"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENTRY = ROOT / "src" / "palaver"
FOLDERS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests"}

# Who may import whom; a folder may always import itself.
MAY_IMPORT = {
    "core": set[str](),
    "templates": {"core"},
    "archiver": {"core"},
    "search": {"core", "archiver"},
    "observe": {"core", "archiver", "search"},
    "agents": {"core", "archiver", "search", "observe", "templates"},
}

HEAVY = {"anthropic", "mcp", "onnxruntime", "sentence_transformers", "tantivy", "torch", "usearch"}

MODULE_LINES = 400
FUNCTION_LINES = 60
# What is longer, at its exact length: an entry may only shrink, and goes when it is within the limit.
LONGER = dict[str, int]()

MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ENTRY.glob("*.py"),
        *ENTRY.glob("cli/*.py"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")),
    ]
)
INSIDE = [name for name in MODULES if not name.startswith("src/")]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_bytes(), name)


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """All trees take 70 MB, and no other module looks at them."""
    yield
    tree.cache_clear()


def absolute_imports(name: str) -> Iterator[str]:
    """The first name of everything that a module imports absolutely."""
    for node in ast.walk(tree(name)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                pass


def relative_imports(name: str) -> Iterator[str]:
    """The part of `palaver` that each relative import of a module reaches: a root folder or an entry point."""
    package = Path(name).parent.parts
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level]
            named = node.module.split(".")[:1] if node.module else [alias.name for alias in node.names]
            yield from base[:1] or named


@pytest.mark.parametrize("name", INSIDE)
def test_inside_imports_are_relative(name: str) -> None:
    """No module in a root folder imports `palaver` or a root folder absolutely: each class has one identity."""
    assert (FOLDERS | {"palaver"}).intersection(absolute_imports(name)) == set()


@pytest.mark.parametrize("name", INSIDE)
def test_imports_go_one_way(name: str) -> None:
    """core <- archiver <- search <- observe <- agents <- src/palaver, and templates look at core only."""
    folder = Path(name).parts[0]

    assert set(relative_imports(name)) <= MAY_IMPORT[folder] | {folder}


def test_every_folder_has_its_place() -> None:
    """Each root folder is in the import order, and the import order names no others."""
    assert set(MAY_IMPORT) == FOLDERS


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
def test_starting_is_cheap(arguments: list[str]) -> None:
    """Asking the command line what it can do loads no model, index, server or client."""
    start = f"from palaver.cli import main; main({arguments!r}, prog_name='palaver', standalone_mode=False)"
    program = f"import sys; {start}; print(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "palaver" in ran.stdout
    assert HEAVY.intersection(ran.stderr.split()) == set()


def lengths() -> Iterator[tuple[str, int, int]]:
    """Each module and function with its lines and its limit."""
    for name in MODULES:
        yield name, (ROOT / name).read_bytes().count(b"\n"), MODULE_LINES
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{name}:{node.name}", node.end_lineno - node.lineno + 1, FUNCTION_LINES


def test_pieces_are_small() -> None:
    """No module is over 400 lines and no function over 60, save those listed, which only shrink."""
    assert {name: lines for name, lines, limit in lengths() if lines > limit} == LONGER
