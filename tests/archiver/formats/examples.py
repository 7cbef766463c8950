"""Synthetic transcript of each format with every record type that its reader knows: `examples/<agent>.jsonl`."""

import io
from pathlib import Path
from typing import Any

import orjson

from palaver.archiver.formats import TranscriptFormat

FOLDER = Path(__file__).with_name("examples")


def example(known: TranscriptFormat) -> bytes:
    """Return the example transcript of an agent."""
    return (FOLDER / f"{known.agent}.jsonl").read_bytes()


def records(known: TranscriptFormat) -> list[dict[str, Any]]:
    """Return the records of the example transcript."""
    return [orjson.loads(line) for line in io.BytesIO(example(known))]
