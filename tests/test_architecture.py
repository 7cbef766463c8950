"""Import order, import cycles, lengths and cold start of the packages."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .cases import for_each

ROOT = Path(__file__).parents[1]
ENTRY = ROOT / "src" / "palaver"
FOLDERS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests"}

# Folders that each folder may import; every folder may import itself.
MAY_IMPORT = {
    "core": set[str](),
    "templates": {"core"},
    "archiver": {"core"},
    "search": {"core", "archiver"},
    "observe": {"core", "archiver", "search", "templates"},
    "agents": {"core", "archiver", "search", "observe", "templates"},
    "viewer": {"core", "archiver", "search", "observe", "agents", "templates"},
    "team": {"core", "archiver", "search", "observe", "agents", "templates", "viewer"},
    "cli": {"core", "archiver", "search", "observe", "templates", "agents", "viewer", "team"},
}

# The sub-packages of a folder in import order: each imports only those before it.
ORDER = {
    "archiver": (
        "formats",
        "redaction",
        "store",
        "copies",
        "reading",
        "documents",
        "deletion",
        "ingest",
        "watch",
    ),
    "search": ("query", "model", "index", "rank", "present"),
    "observe": (
        "rules",
        "commands",
        "memory",
        "mnemonics",
        "traces",
        "transcript",
        "extraction",
        "llm",
        "deletion",
        "background",
        "upkeep",
        "sync",
    ),
    "team": ("server", "client"),
}

# Remaining imports against the order, as importing and imported module. The set may only shrink.
AGAINST_ORDER = set[tuple[str, str]]()

# Libraries that load slowly, so functions may import them.
LAZY = set(
    "anthropic concurrent genai_prices httpx2 jinja2 markdown_it mcp numpy onnxruntime pathspec pygments pypdf"
    " rapidfuzz rich sentence_transformers tantivy tokenizers tomlkit torch tree_sitter usearch watchfiles yaml".split()
)

# Number of other imports within functions per package. Counts may only decrease.
LOCAL_IMPORTS: dict[str, int] = {
    "agents": 2,
    "agents/ask": 2,
    "agents/hooks": 2,
    "core": 7,
    "observe": 13,
    "observe/sync": 3,
    "observe/llm": 1,
    "observe/memory": 2,
    "search": 9,
    "search/index": 11,
    "search/model": 3,
    "search/present": 1,
    "search/query": 1,
    "search/rank": 2,
    "templates": 1,
}

HEAVY = {"anthropic", "genai_prices", "mcp", "onnxruntime", "sentence_transformers", "tantivy", "torch", "usearch"}

MODULE_LINES = 800
FUNCTION_LINES = 60
# Longer modules and functions with their exact lengths. Remove an entry when it is within the limit.
LONGER = dict[str, int]()

MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ENTRY.glob("*.py"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")),
    ]
)
INSIDE = [name for name in MODULES if not name.startswith("src/")]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_bytes(), name)


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """Drop the cached syntax trees (70 MB) after the tests of this module."""
    yield
    tree.cache_clear()


def absolute_imports(name: str) -> Iterator[str]:
    """Yield the first name of every absolute import of a module."""
    for node in ast.walk(tree(name)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                pass


def relative_imports(name: str) -> Iterator[str]:
    """Yield the root folder or entry point of every relative import of a module."""
    package = Path(name).parent.parts
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level]
            named = node.module.split(".")[:1] if node.module else [alias.name for alias in node.names]
            yield from base[:1] or named


def module(name: str) -> str:
    """Return the dotted name of a module, below `palaver`."""
    parts = Path(name).with_suffix("").parts
    return ".".join(parts[2:] if parts[0] == "src" else parts).removesuffix(".__init__")


MODULE_NAMES = {module(name): name for name in MODULES}


def named(name: str, node: ast.AST) -> Iterator[str]:
    """Yield the modules of Palaver that an import statement imports."""
    if not isinstance(node, ast.ImportFrom):
        return
    if node.level:
        package = list(Path(name).parent.parts[2:] if name.startswith("src/") else Path(name).parent.parts)
        base = package[: len(package) + 1 - node.level]
    elif (node.module or "").split(".")[0] == "palaver":
        base = []
    else:
        return
    target = ".".join([*base, *(node.module or "").removeprefix("palaver").strip(".").split(".")]).strip(".")
    for alias in node.names:
        inner = f"{target}.{alias.name}".strip(".")
        if inner in MODULE_NAMES:
            yield inner
        elif target in MODULE_NAMES:
            yield target


def imports(name: str) -> set[str]:
    """Return all modules of Palaver that a module imports, including for types and within functions."""
    return {each for node in ast.walk(tree(name)) for each in named(name, node)} - {module(name)}


def local_imports(name: str) -> Iterator[str]:
    """Yield one name for each import inside a function of a module, except imports of heavy libraries."""
    functions = (node for node in ast.walk(tree(name)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    nodes = {node for function in functions for node in ast.walk(function)}
    for node in nodes:
        match node:
            case ast.Import(names=[ast.alias(name=library)]):
                yield from {library.partition(".")[0]} - LAZY
            case ast.ImportFrom(module=str(library), level=0):
                yield from {library.partition(".")[0]} - LAZY
            case ast.ImportFrom():
                yield module(name)
            case _:
                pass


def test_inside_imports_are_relative() -> None:
    """Modules in root folders import each other relatively, so each class has one identity.

    Commands import the version from `palaver`.
    """
    ours = {name: FOLDERS | ({"palaver"} if not name.startswith("cli/") else set[str]()) for name in INSIDE}

    assert {name: absolute for name in INSIDE if (absolute := ours[name].intersection(absolute_imports(name)))} == {}


@for_each("name", INSIDE)
def test_imports_go_one_way(name: str) -> None:
    """Root folders import only those before them. Templates import core only."""
    folder = Path(name).parts[0]

    assert set(relative_imports(name)) <= MAY_IMPORT[folder] | {folder}


def test_import_order_contains_every_folder() -> None:
    """The import order contains each root folder."""
    assert set(MAY_IMPORT) == FOLDERS


@pytest.mark.parametrize("folder", ORDER)
def test_subpackages_import_in_one_direction(folder: str) -> None:
    """A sub-package imports only sub-packages before it in the order of its folder."""
    order = {each: place for place, each in enumerate(ORDER[folder])}
    against = {
        (importing, imported)
        for importing, name in MODULE_NAMES.items()
        for imported in imports(name)
        if importing.startswith(f"{folder}.") and imported.startswith(f"{folder}.")
        if order.get(imported.split(".")[1], -1) > order.get(importing.split(".")[1], len(order))
    }

    assert against <= AGAINST_ORDER


@pytest.mark.parametrize("folder", ORDER)
def test_order_contains_every_subpackage(folder: str) -> None:
    """The import order of a folder contains each of its sub-packages once."""
    assert sorted(ORDER[folder]) == sorted(path.parent.name for path in (ROOT / folder).glob("*/__init__.py"))


def test_modules_have_no_import_cycles() -> None:
    """No module imports itself through others."""
    found = {importing: imports(name) for importing, name in MODULE_NAMES.items()}
    sorter = TopologicalSorter[str]()
    for importing, imported in found.items():
        sorter.add(importing, *(each for each in imported if (importing, each) not in AGAINST_ORDER))

    sorter.prepare()


def test_functions_import_only_heavy_libraries() -> None:
    """Only heavy libraries are imported within functions."""
    counts = Counter("/".join(Path(name).parent.parts[:2]) for name in INSIDE for _ in local_imports(name))
    del counts["cli"]  # A command imports what it needs when it runs.

    assert {package: count for package, count in counts.items() if count > LOCAL_IMPORTS.get(package, 0)} == {}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
def test_help_and_version_load_no_heavy_library(arguments: list[str]) -> None:
    """`--help` and `--version` import no model, index, server or client library."""
    start = f"from palaver.cli import main; main({arguments!r}, prog_name='palaver', standalone_mode=False)"
    program = f"import sys; {start}; print(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "palaver" in ran.stdout
    assert HEAVY.intersection(ran.stderr.split()) == set()


def lengths() -> Iterator[tuple[str, int, int]]:
    """Yield each module and function with its number of lines and its limit."""
    for name in MODULES:
        yield name, (ROOT / name).read_bytes().count(b"\n"), MODULE_LINES
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield f"{name}:{node.name}", node.end_lineno - node.lineno + 1, FUNCTION_LINES


def test_modules_and_functions_are_short() -> None:
    """Modules have at most 800 lines and functions at most 60."""
    assert {name: lines for name, lines, limit in lengths() if lines > limit} == LONGER
