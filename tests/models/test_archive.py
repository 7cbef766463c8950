"""Archives are embedded and searched with a model of the extra `models`."""

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.errors import ModelUnavailable
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.core.results import Results
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.index import indexer
from palaver.search.index.generation import Generations
from palaver.search.model.embedder import SentenceTransformerEmbedder

Embed: TypeAlias = Callable[[SentenceTransformerEmbedder, Sequence[str]], NDArray[np.float32]]

SESSION = "6c0a7f8e-1d52-4c58-9f0e-4b1f5b2f7a10"
SAID = (
    ("user", "Uploads of large pictures fail with a timeout. Please find out why."),
    ("assistant", "The proxy closes connections after 30 seconds, so I raised its limit for the upload route."),
    ("user", "Which database shall we take for the job queue?"),
    ("assistant", "We take SQLite, because one machine writes and nobody has to operate a server."),
)


def transcript(folder: Path) -> Path:
    """Write a transcript of two exchanges."""
    path = folder / f"{SESSION}.jsonl"
    lines = [
        {
            "type": speaker,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number else None,
            "sessionId": SESSION,
            "timestamp": f"2026-03-01T10:0{number}:00.000Z",
            "cwd": "/src/shop",
            "message": {"role": speaker, "content": text},
        }
        for number, (speaker, text) in enumerate(SAID)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_any_sentence_transformers_model_embeds_an_archive(tmp_path: Path, model_folder: Path) -> None:
    """The vectors of another model find paraphrases."""
    home = Home(tmp_path / "home")
    with Pipeline(home, str(model_folder)) as pipeline:
        report = pipeline.run(in_paths([transcript(tmp_path)]))
    published = Generations(home.index).current()
    with ArchiveSearch(home, str(model_folder)) as layers:
        results = layers.find(Query.parse("images cannot be sent to the server", mode="vector"))

    assert report.model is None
    assert report.embedded > 0
    assert published is not None
    assert published.manifest.model.startswith(str(model_folder))
    assert published.manifest.vectors >= len(SAID) // 2
    assert "picture" in results.hits[0].title
    assert results.searched == ("vector",)


def search(home: Home, model: str) -> Results:
    """Return the hits of a paraphrase."""
    with ArchiveSearch(home, model) as layers:
        return layers.find(Query.parse("images cannot be sent to the server", mode="vector"))


def fail_after_one(embed: Embed) -> Embed:
    """Return an embedder that fails after its first batch."""
    calls = count()

    def once(self: SentenceTransformerEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        if next(calls):
            raise ModelUnavailable("planted")
        return embed(self, texts)

    return once


def test_old_vectors_are_used_until_all_are_renewed(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new model is not used before every item has its new vectors."""
    home = Home(tmp_path / "home")
    found = in_paths([transcript(tmp_path)])
    with Pipeline(home) as pipeline:
        pipeline.run(found)
    before = Generations(home.index).current()
    with Pipeline(home, str(model_folder)) as pipeline:
        with monkeypatch.context() as patch:
            patch.setattr(SentenceTransformerEmbedder, "embed", fail_after_one(SentenceTransformerEmbedder.embed))
            patch.setattr(indexer, "_BATCH", 1)
            stopped = pipeline.run(found)
        between, reply = Generations(home.index).current(), search(home, str(model_folder))
        pipeline.run(found)
    after, results = Generations(home.index).current(), search(home, str(model_folder))

    assert before is not None
    assert between is not None
    assert after is not None
    assert stopped.model is not None
    assert between.manifest.model == before.manifest.model != after.manifest.model
    assert ("picture" in reply.hits[0].title, reply.searched) == (True, ("vector",))
    assert before.manifest.vectors == after.manifest.vectors
    assert "picture" in results.hits[0].title
