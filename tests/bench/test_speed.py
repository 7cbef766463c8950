"""The speed benchmark runs and reports all measurements."""

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from bench.speed.measures import ingest, search_clients, search_phases, search_ratios, warm_search
from bench.speed.process import Place, compile_modules
from palaver.search.rank import engine

from .. import demo


def test_speed_is_measured_over_any_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ingest runs and the warm searches give rows with times, and each search has a baseline."""
    monkeypatch.setenv("PATH", str(tmp_path))  # agentsview is measured only where it is installed.
    place = Place(tmp_path / "home" / "palaver", tmp_path / "user" / ".claude")
    place.home.parent.mkdir()
    files = sorted(demo.history(place.history / "projects").rglob("*.jsonl"))

    asked = ["sqlite", "high water", "json files"]
    rows = [
        *ingest(place, files),
        *warm_search(place, asked),
        *search_ratios(place, asked),
        *search_clients(place, asked),
        *search_phases(place, asked),
    ]

    ratios = ["median", "99th percentile", "by session"] if sys.platform == "linux" else []
    assert [row.name for row in rows if row.target] == [
        "palaver up, until text is searchable",
        "search, warm, median",
        "search over MCP, warm, median",
        *(f"search over MCP, CPU time, {name}" for name in ratios),
        "palaver search, answered by a running process",
    ]
    assert len(rows) == 10 + (4 if ratios else 0) + 2 * 9
    assert all(row.ours > 0 and (row.baseline is None or row.baseline > 0) for row in rows)


def test_measured_programs_are_compiled() -> None:
    """Measured programs start from compiled modules, even in a fresh checkout."""
    compiled = Path(cache_from_source(engine.__file__))
    compiled.unlink(missing_ok=True)

    compile_modules()

    assert compiled.is_file()
