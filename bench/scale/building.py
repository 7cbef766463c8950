"""Functions that build synthetic archives, or reuse existing ones."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import DecodeError, Struct, json

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.search.index.generation import FORMAT, Generation, Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedding import Embedder
from palaver.search.query import tokenizer

from ..stopwatch import took
from . import archive
from .archive import ArchiveWriter
from .material import Material
from .row import Row

_BUILT = "built.json"


class Parameters(Struct, frozen=True):
    """Parameters of an archive. An existing archive is reused only if its parameters are equal."""

    items: int
    model: str
    writer: int = archive.VERSION
    index: int = FORMAT
    analysis: int = tokenizer.VERSION


class Built(Struct, frozen=True):
    """Parameters and measurements that are stored beside an archive."""

    parameters: Parameters
    rows: list[Row]


def build(
    folder: Path, items: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> Sequence[Row]:
    """Build an archive in `folder / "home"`, or reuse it, and return the cost of the build."""
    parameters, path, home = Parameters(items, embedder.name), folder / _BUILT, Home(folder / "home")
    known = _known(path)
    if known is None or known.parameters != parameters:
        if home.root.exists():
            shutil.rmtree(home.root)
        known = Built(parameters, _build(home, items, progress, material, embedder))
        path.write_bytes(json.encode(known))
    return known.rows


def _known(path: Path) -> Built | None:
    try:
        return json.decode(path.read_bytes(), type=Built)
    except (FileNotFoundError, DecodeError):
        return None


def _build(
    home: Home, items: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> list[Row]:
    home.make()
    with Store.create(home.database) as store:
        filling = took(lambda: ArchiveWriter(material, embedder.name).fill(store, items, progress))
        filled = Row.of_peak("fill the store, peak memory")
        indexing = took(Indexer(store, Generations(home.index), embedder).publish)
    size = sum(path.stat().st_size for path in published(home).folder.rglob("*"))
    return [
        Row.of_work("fill the store", filling),
        filled,
        Row.of_work("build the index", indexing),
        Row.of_peak("build the index, peak memory"),
        Row("index on disk", (size / 1e6,), "MB"),
        Row("store on disk", (home.database.stat().st_size / 1e6,), "MB"),
    ]


def published(home: Home) -> Generation:
    """Return the published index of a home."""
    generation = Generations(home.index).current()
    assert generation is not None
    return generation
