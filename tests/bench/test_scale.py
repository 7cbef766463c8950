"""Does the measuring of growth run?"""

from pathlib import Path

from bench.scale.material import Material
from bench.scale.measures import measures

from palaver.search.embedder import load


def test_growth_is_measured_over_any_number_of_items(tmp_path: Path) -> None:
    """An archive of the size asked for is built, and every part of a search is measured over it."""
    seen: list[int] = []

    embedder = load()
    rows = list(measures(tmp_path / "home", 200, 12, seen.append, Material.invented(embedder), embedder))

    assert seen == [100, 200]
    assert len({row.name for row in rows}) == len(rows) == 32
    assert all(row.value > 0 for row in rows)
