"""Palaver itself as an engine: every corpus goes in by the front door, as transcripts, and comes out of layer 1."""

import tempfile
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from palaver.archiver.sources import in_paths

from palaver.core.disclosure import LIMIT_MAX, Hit, Query
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline
from palaver.search.layers import Layers

from .. import shared
from .baselines import best_per_item
from .corpus import Corpus, Passage, Ranked

_SPACE = uuid.UUID("8b0c9d0e-6a55-5a0e-9f0b-2f4f3f1f6a11")

Place = tuple[str, int]
"""A session's id and a line of its transcript."""


class Ours:
    """Palaver over a corpus, in a fresh home. Hits beyond what one reply may hold do not exist."""

    def __init__(self, corpus: Corpus) -> None:
        """A corpus of transcripts is archived as it is and its items are sessions.

        In any other corpus each passage becomes a prompt of its own: one transcript per project, in order, or one per
        passage where there are no projects and so no neighbours.
        """
        self._folder = tempfile.TemporaryDirectory()
        root, home = Path(self._folder.name) / "projects", Home(Path(self._folder.name) / "home")
        root.mkdir()
        self._items: Mapping[Place, str] | None = None
        if corpus.transcripts is None:
            self._items = _write(corpus.passages, root)
        else:
            shared.unpack(corpus.transcripts, root)
        with Pipeline(home) as pipeline:
            pipeline.run(in_paths([root]))
        self._layers = Layers(home)

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        asked = Query.parse(query, limit=min(limit, LIMIT_MAX), projects=[project] if project else [])
        hits = self._layers.search(asked).hits
        return best_per_item(((self._item(hit), hit.score) for hit in hits), limit)

    def _item(self, hit: Hit) -> str:
        return hit.session_id if self._items is None else self._items[hit.session_id, hit.start_line]


def _write(passages: Sequence[Passage], root: Path) -> Mapping[Place, str]:
    """Transcripts that hold the passages, and which item stands where."""
    transcripts: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        transcripts[passage.project or passage.item].append(passage)
    items: dict[Place, str] = {}
    for name, held in transcripts.items():
        session = str(uuid.uuid5(_SPACE, name))
        lines = [_prompt(session, number, passage) for number, passage in enumerate(held, 1)]
        folder = root / (held[0].project or "corpus")
        folder.mkdir(exist_ok=True)
        (folder / f"{session}.jsonl").write_bytes(b"\n".join([*lines, b""]))
        items |= {(session, number): passage.item for number, passage in enumerate(held, 1)}
    return items


def _prompt(session: str, number: int, passage: Passage) -> bytes:
    """A line as Claude Code writes it for something a person typed."""
    return orjson.dumps(
        {
            "type": "user",
            "uuid": str(uuid.uuid5(_SPACE, f"{session}/{number}")),
            "parentUuid": str(uuid.uuid5(_SPACE, f"{session}/{number - 1}")) if number > 1 else None,
            "sessionId": session,
            "timestamp": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "cwd": f"/{passage.project or 'corpus'}",
            "version": "2.1.0",
            "isSidechain": False,
            "message": {"role": "user", "content": passage.text},
        }
    )
