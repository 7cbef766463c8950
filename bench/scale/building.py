"""Building made-up archives, which takes longest: one that was kept is asked again."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.search import analysis
from palaver.search.embedder import Embedder
from palaver.search.generation import FORMAT, Generation, Generations
from palaver.search.indexer import Indexer

from ..stopwatch import took
from . import archive
from .archive import Maker
from .material import Material
from .row import Row

_BUILT = "built.json"


class Made(Struct, frozen=True):
    """What an archive was made as. Only one that would be made alike today is asked again."""

    items: int
    model: str
    maker: int = archive.VERSION
    index: int = FORMAT
    analysis: int = analysis.VERSION


def build(
    folder: Path, items: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> Sequence[Row]:
    """Have an archive of so many items in `folder / "home"`, and what making it took, now or when it was made."""
    made = asdict(Made(items, embedder.name))
    path = folder / _BUILT
    if path.exists() and (known := orjson.loads(path.read_bytes()))["made"] == made:
        return [Row(row["name"], tuple(row["figures"]), row["unit"]) for row in known["rows"]]
    home = Home(folder / "home")
    if home.root.exists():
        shutil.rmtree(home.root)
    rows = _build(home, items, progress, material, embedder)
    path.write_bytes(orjson.dumps({"made": made, "rows": rows}, option=orjson.OPT_INDENT_2))
    return rows


def _build(
    home: Home, items: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> Sequence[Row]:
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
    """The index of a home that has one."""
    generation = Generations(home.index).current()
    assert generation is not None
    return generation
