"""The scale benchmark runs and reports all measurements."""

from collections.abc import Sequence
from pathlib import Path

from bench.scale.building import build
from bench.scale.material import Material
from bench.scale.measures import ask, live
from bench.scale.row import Row
from bench.stopwatch import Took
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.search.model.embedder import load


def test_growth_is_measured_over_any_number_of_items(tmp_path: Path) -> None:
    """An archive of the requested size is built and extended, and every phase of a search is measured."""
    seen: list[int] = []

    embedder = load()
    material = Material.invented(embedder)
    rows = [
        *build(tmp_path / "200", 200, seen.append, material, embedder),
        *live(tmp_path / "200", material, embedder),
        *ask(tmp_path / "200", 12, material, embedder),
    ]

    assert seen == [100, 200]
    assert len({row.name for row in rows}) == len(rows) == 35
    assert all(figure > 0 for row in rows for figure in row.figures)
    with Store.open(Home(tmp_path / "200" / "home").database) as store:
        assert store.vectors.count_unembedded(embedder.name) == 0
        assert len(store.items.all_keys()) == 300


def test_kept_archive_is_reused(tmp_path: Path) -> None:
    """A kept archive is rebuilt only if its parameters changed or its build was interrupted."""
    embedder, seen = load(), list[int]()
    material, known = Material.invented(embedder), tmp_path / "kept" / "built.json"

    def rows() -> Sequence[Row]:
        seen.clear()
        return build(tmp_path / "kept", 100, seen.append, material, embedder)

    first = rows()
    assert seen == [100]
    assert rows() == first
    assert not seen
    known.write_text(known.read_text().replace(embedder.name, "another"))
    rows()
    assert seen == [100]
    known.write_bytes(known.read_bytes()[:-9])
    rows()
    assert seen == [100]
    known.unlink()
    rows()
    assert seen == [100]


def test_row_contains_all_figures() -> None:
    """A row reports work in wall and CPU time, and calls by median, worst case and CPU time."""
    assert str(Row.of_work("fill", Took(2, 1.5))) == "2.0 / 1.5 s"
    assert str(Row.of_calls("search", [Took(0.001, 0.002), Took(0.003, 0.002), Took(0.003, 0.002)])) == (
        "3.0 / 3.0 / 2.0 ms"
    )
    assert str(Row("recall", (0.9,))) == "0.900"
