"""Build synthetic archives, and reuse kept ones."""

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
from .archive import Maker
from .material import Material
from .row import Row

_BUILT = "built.json"


class Made(Struct, frozen=True):
    """Parameters of an archive; only one with equal parameters is reused."""

    items: int
    model: str
    maker: int = archive.VERSION
    index: int = FORMAT
    analysis: int = tokenizer.VERSION


class Built(Struct, frozen=True):
    """Record stored beside an archive."""

    made: Made
    rows: list[Row]


def build(
    folder: Path, items: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> Sequence[Row]:
    """Return an archive of a given size in `folder / "home"` with the cost of building it."""
    made, path, home = Made(items, embedder.name), folder / _BUILT, Home(folder / "home")
    known = _known(path)
    if known is None or known.made != made:
        if home.root.exists():
            shutil.rmtree(home.root)
        known = Built(made, _build(home, items, progress, material, embedder))
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
        filling = took(lambda: Maker(material, embedder.name).fill(store, items, progress))
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
