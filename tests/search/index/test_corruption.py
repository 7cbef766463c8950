"""Tests of damaged index files: searches still answer, and the next publication repairs the index."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.search.index import vector_index
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer

from ..fake_embedder import FakeEmbedder
from ..history import History, Said

ROOT = Path(__file__).parents[3]
SEARCHER = Path(__file__).parents[1] / "searcher.py"


class Searcher:
    """Process that searches. If a damaged file kills it, it returns no results."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), *sys.path])
        self._process = subprocess.Popen(
            [sys.executable, str(SEARCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )

    def ask(self, *command: object) -> Any:
        """Return the keys that text search and vector search find."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(str, command)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"it died with {self._process.wait()}"
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture(scope="module")
def searcher() -> Iterator[Searcher]:
    process = Searcher()
    yield process
    process.close()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """Archive with an index that was updated once, has a vector graph, and is behind the database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "EXACT_UP_TO", 3)
        made = History(tmp_path_factory.mktemp("corruption"))
        made.say(
            "one", *(Said(f"brass kettle {number}", f"the silver spoon {number} is beside it") for number in range(9))
        )
        made.embed()
        made.publish()
        made.say("two", Said("a copper teapot", "that stands on the stove and is polished every week"))
        made.embed()
        made.publish()
        made.say("three", Said("another teapot"))
        yield made


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = (truncated, zeroed, flipped, removed, emptied)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
def test_a_damaged_file_changes_no_results(
    history: History,
    searcher: Searcher,
    tmp_path: Path,
    damage: Callable[[Path], None],
) -> None:
    """With each file damaged in turn, a search finds every item, and the next publication repairs the index."""
    database, index = history.folder / "palaver.db", tmp_path / "index"
    right = searcher.ask("open", database, tmp_path / "none")
    assert all(texts for texts in right[0])
    files = sorted(path for path in (history.folder / "index").rglob("*") if path.is_file())
    assert any(path.name == "graph.usearch" for path in files)
    for path in files:
        shutil.rmtree(index, ignore_errors=True)
        shutil.copytree(history.folder / "index", index)
        place = index / path.relative_to(history.folder / "index")
        if place.stat().st_size or damage is removed:
            damage(place)
        assert searcher.ask("open", database, index) == right, place

    generations = Generations(index)
    repaired = Indexer(history.store, generations, FakeEmbedder()).publish()
    assert repaired is not None
    generations.verify(repaired)
    assert searcher.ask("ask") == right
