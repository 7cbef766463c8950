"""Contract `transcripts`, second part: what the archive makes of copies, forks, doubled lines and growing files.

Each test runs on every format, with its example in `examples/<agent>.jsonl`.
"""

from collections import Counter
from pathlib import Path

import pytest

from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import Transcript
from palaver.core.conversation import Kind, Speaker

from ..history import History
from .examples import example

every_format = pytest.mark.parametrize("known", all_formats(), ids=lambda known: known.agent)


def ingest(history: History, known: TranscriptFormat, *paths: Path) -> None:
    """Ingest files as transcripts of one format."""
    report = Ingest(history.store, history.raw).run(Transcript(path, path, path.parent, known) for path in paths)
    assert report.problems == []


def said(history: History) -> Counter[tuple[Speaker, Kind, str]]:
    """Count the stored prompts and replies."""
    turns = (turn for stored in history.stored() for turn in stored.exchange.turns)
    return Counter((turn.speaker, turn.kind, turn.text) for turn in turns if turn.kind in {Kind.PROMPT, Kind.PROSE})


def write(folder: Path, data: bytes, name: str = "transcript.jsonl") -> Path:
    """Write a transcript."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path


@every_format
def test_a_growing_file_ends_like_a_complete_one(known: TranscriptFormat, tmp_path: Path) -> None:
    """A file that is ingested after every third line has the same exchanges as a complete one."""
    rows = example(known).splitlines(keepends=True)
    with History(tmp_path / "whole") as whole, History(tmp_path / "grown") as grown:
        ingest(whole, known, write(whole.folder / "a", example(known)))
        for end in [*range(3, len(rows), 3), len(rows)]:
            path = write(grown.folder / "a", b"".join(rows[:end]))
            ingest(grown, known, grown.touch(path, end))

        assert said(grown) == said(whole)


@every_format
def test_a_copy_of_a_file_adds_no_text(known: TranscriptFormat, tmp_path: Path) -> None:
    """The same content in another folder, or under another name, is one session, or repeats its records."""
    with History(tmp_path) as history:
        first = write(history.folder / "a", example(known))
        ingest(history, known, first)
        before = said(history)
        ingest(history, known, first, write(history.folder / "b", example(known)))
        ingest(history, known, first, write(history.folder / "a", example(known), "copy.jsonl"))

        assert said(history) == before


@every_format
def test_doubled_lines_add_no_text(known: TranscriptFormat, tmp_path: Path) -> None:
    """A tool that wrote every line twice added nothing."""
    rows = example(known).splitlines(keepends=True)
    with History(tmp_path / "one") as one, History(tmp_path / "two") as two:
        ingest(one, known, write(one.folder / "a", example(known)))
        ingest(two, known, write(two.folder / "a", b"".join(row * 2 for row in rows)))

        assert said(two) - said(one) == Counter()
