"""A secret in any field of any transcript format is stored only in the raw copies."""

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import Transcript
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch

from .formats.claude_code.claude_lines import assistant, result, tool, user
from .formats.examples import records
from .history import History, talk
from .redaction.planted import TOKENS, pem

CANARY = TOKENS["github-pat"](random.Random(3))
SEARCH = """
import sys; from pathlib import Path
home, needles = Path(sys.argv[1]), [needle.encode() for needle in sys.argv[2:]]
for path in home.rglob("*"):
    if path.is_file() and home / "archive" not in path.parents and any(each in path.read_bytes() for each in needles):
        print(path)
"""
Plant = Callable[[str], str]


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every text in a record. All elements of a list share one path."""
    if isinstance(value, str):
        yield path
    for name, held in _parts(value):
        yield from leaves(held, f"{path}/{name}")


def planted(value: Any, plant: Plant, where: Callable[[str, str], bool], path: str = "") -> Any:
    """Return a record with `plant` applied to the texts whose path and content `where` accepts."""
    if isinstance(value, str):
        return plant(value) if where(path, value) else value
    held = [(name, planted(part, plant, where, f"{path}/{name}")) for name, part in _parts(value)]
    return dict(held) if isinstance(value, dict) else [part for _, part in held] if isinstance(value, list) else value


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    return [("*", held) for held in cast("list[object]", value)] if isinstance(value, list) else []


def alone(_: str) -> str:
    return CANARY


def _is_at(leaf: str, path: str, _: str) -> bool:
    return path == leaf


def within(text: str) -> str:
    return f"{text} {CANARY} {text}"


def write(folder: Path, number: int, known: TranscriptFormat, made: list[Any]) -> Transcript:
    path = folder / f"{number:08}-0000-4000-8000-000000000000.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in made))
    return Transcript(path, path, folder, known)


def files_with(home: Home, *needles: str) -> list[str]:
    """Return the files outside the raw copies that contain any of the strings, as read by another process."""
    command = [sys.executable, "-c", SEARCH, str(home.root), *needles]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("known", all_formats(), ids=lambda known: known.agent)
def test_no_field_lets_a_secret_through(known: TranscriptFormat, tmp_path: Path) -> None:
    """A secret in any field of any record never reaches the database."""
    made, transcripts = records(known), list[Transcript]()
    for number, leaf in enumerate(sorted({leaf for record in made for leaf in leaves(record)})):
        plant = alone if number % 2 else within
        chosen = [planted(record, plant, partial(_is_at, leaf)) for record in made]
        transcripts.append(write(tmp_path, number, known, chosen))
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        tally = Ingest(store, RawArchive(home.archive)).run(transcripts)

        assert tally.changed == len(transcripts) > 5
        assert files_with(home, CANARY, CANARY[4:]) == []


def test_derived_data_contains_no_secret(tmp_path: Path) -> None:
    """Secrets planted in all messages are absent from indexes, vectors, observations, logs and results."""
    source = random.Random(5)
    secrets = {kind: make(source) for kind, make in TOKENS.items()}
    whole = " and ".join(secrets.values())

    def append(text: str) -> str:
        return f"{text} {whole}"

    home = Home(tmp_path / "home")
    transcripts = [
        write(tmp_path, number, known, [planted(each, append, _is_message) for each in records(known)])
        for number, known in enumerate(all_formats())
    ]
    with Pipeline(home) as pipeline:
        assert pipeline.run(transcripts).ingested.changed == len(all_formats())

    lines = [line for secret in secrets.values() for line in secret.splitlines() if not line.startswith("-")]
    assert files_with(home, *lines) == []
    with ArchiveSearch(home) as layers:
        for secret in secrets.values():
            words = re.findall(r"\w{12,}", secret)
            assert not [hit for hit in layers.find(Query.parse(words[0])).hits if words[0] in str(hit)]


def _is_message(_: str, text: str) -> bool:
    return " " in text


@pytest.mark.parametrize("before", range(1280, 1360, 7))
def test_truncation_never_leaves_half_a_secret(before: int, tmp_path: Path) -> None:
    """If a long result is truncated inside a secret, the whole secret is redacted."""
    secret = pem(random.Random(1)) if before % 2 else CANARY
    output = "o" * before + " " + secret + " " + "x " * 9000 + secret + " " + "o" * (before - 900)
    with History(tmp_path) as history:
        history.write([*talk("one"), user("go"), assistant(tool("Bash", {"command": f"cat {output}"})), result(output)])
        history.ingest()
        text = "".join(turn.text for turn in history.stored()[-1].exchange.turns)

    assert not [part for part in re.findall(r"\w{8,}", secret) if part in text]
    assert "characters left out" in text
