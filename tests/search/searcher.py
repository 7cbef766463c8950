"""Process that searches, for tests that damage the files it has open.

It reads commands from standard input, one per line. `open DATABASE INDEX` opens an archive, and `ask` searches it. Each
reply is a line of JSON with the keys that text search finds and the keys that vector search finds.
"""

import json
import sys
from pathlib import Path

from palaver.archiver.store import Store
from palaver.core.query import Filters
from palaver.search.index.generation import Generations
from palaver.search.index.snapshot import Snapshot
from tests.search.fake_embedder import FakeEmbedder

WORDS = ("kettle", "spoon", "teapot")


def answers(view: Snapshot) -> list[object]:
    view.refresh()
    vectors = FakeEmbedder().embed(WORDS)
    texts = [sorted(map(int, view.text(word, Filters(), 50).key)) for word in WORDS]
    matches = [view.nearest(row, Filters(), 3) for row in vectors]
    return [texts, [[each.item.tolist(), each.similarity.round(3).tolist()] for each in matches]]


def main() -> None:
    view: Snapshot | None = None
    for line in sys.stdin:
        command, *paths = line.split()
        if command == "open":
            database, index = map(Path, paths)
            view = Snapshot(Store.open(database), Generations(index), FakeEmbedder())
        assert view is not None
        print(json.dumps(answers(view)), flush=True)


if __name__ == "__main__":
    main()
