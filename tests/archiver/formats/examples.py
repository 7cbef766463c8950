"""One made-up transcript for each format, with the records that its reader tells apart, in `examples/<agent>.jsonl`."""

import io
from pathlib import Path
from typing import Any

import orjson

from palaver.archiver.formats import TranscriptFormat

FOLDER = Path(__file__).with_name("examples")


def example(known: TranscriptFormat) -> bytes:
    """The transcript as the reader gets it."""
    return (FOLDER / f"{known.agent}.jsonl").read_bytes()


def records(known: TranscriptFormat) -> list[dict[str, Any]]:
    """Its records."""
    return [orjson.loads(line) for line in io.BytesIO(example(known))]
