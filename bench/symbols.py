"""Measure the search for symbols: `python -m bench.symbols [FOLDER...] [--write]`.

It indexes the standard library of the running Python, and each FOLDER, such as an unpacked npm package.
"""

import argparse
import hashlib
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.document import Symbol, last_name
from palaver.core.home import Home
from palaver.search.code_search import CodeSearch

from .stopwatch import machine_load
from .table import table, write_section

_NAMES = 1_000
"""Number of names, drawn in equal shares from all trees."""
_HEADER = ["query", "names", "first", "in the first 10", "median", "99th percentile"]


class _Variant(NamedTuple):
    """Kind of query: its label, and the function that returns the query for a qualified name."""

    label: str
    query: Callable[[str], str]


def _shortened(name: str) -> str:
    name = last_name(name)
    return name[: max(1, len(name) * 3 // 4)]


def _misspelled(name: str) -> str:
    name = last_name(name)
    middle = len(name) // 2
    return name[: middle - 1] + name[middle : middle + 1] + name[middle - 1 : middle] + name[middle + 1 :]


_VARIANTS = (
    _Variant("qualified name", str),
    _Variant("last part of the name", last_name),
    _Variant("first three quarters", _shortened),
    _Variant("two characters swapped", _misspelled),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.symbols", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="further trees of source code")
    parser.add_argument("--keep", type=Path, metavar="HOME", help="keep the home in this folder, and reuse it")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    trees = [Path(sysconfig.get_paths()["stdlib"]), *chosen.folders]
    with TemporaryDirectory() as temporary:
        home = Home(chosen.keep or Path(temporary) / "home")
        home.prepare()
        with Store.create(home.database) as store:
            text = _measured(store, trees, home)
    print(text)
    if chosen.write:
        given = "".join(f" {folder.name}" for folder in chosen.folders)
        write_section("Symbols", f"`python -m bench.symbols{given} --write`; {machine_load()}\n\n{text}")
    return 0


def _measured(store: Store, trees: Sequence[Path], home: Home) -> str:
    ingest, drawn = DocumentIngest(store, Redactor(home.key())), list[Symbol]()
    for tree in trees:
        ingest.index_directory(tree, str(tree.resolve()), DocumentRoots([tree]), recursive=True)
        drawn += _drawn(store, tree, _NAMES // len(trees))
    search = CodeSearch(store, _no_finder)
    search.symbols("warm-up")
    rows = [_row(search, variant, drawn) for variant in _VARIANTS]
    files, units = len(store.documents.files()), len(store.symbols.keys())
    return f"{files:,} files with {units:,} distinct names.\n\n{table(_HEADER, rows)}"


def _drawn(store: Store, tree: Path, count: int) -> list[Symbol]:
    """Return units with different names, in the order of a hash of their names."""
    every = {each.name: each for path in _files(store, tree) for each in store.symbols.of_file(path)}
    return sorted(every.values(), key=lambda each: hashlib.sha256(each.name.encode()).digest())[:count]


def _files(store: Store, tree: Path) -> Iterator[Path]:
    space = str(tree.resolve())
    return (each.source_file for each in store.documents.files() if each.namespace == space)


def _row(search: CodeSearch, variant: _Variant, drawn: Sequence[Symbol]) -> list[str]:
    first = listed = 0
    seconds: list[float] = []
    for wanted in drawn:
        query = variant.query(wanted.name)
        started = time.perf_counter()
        found = search.symbols(query, limit=10).symbols
        seconds.append(time.perf_counter() - started)
        names = [each.name if query == wanted.name else each.last_name for each in found]
        correct = wanted.name if query == wanted.name else wanted.last_name
        first += names[:1] == [correct]
        listed += correct in names
    shares = [f"{count / len(drawn):.1%}" for count in (first, listed)]
    times = [statistics.median(seconds), statistics.quantiles(seconds, n=100)[98]]
    return [variant.label, f"{len(drawn):,}", *shares, *(f"{each * 1000:.1f} ms" for each in times)]


def _no_finder() -> NoReturn:
    raise AssertionError("symbols are searched without the index")


if __name__ == "__main__":
    sys.exit(main())
