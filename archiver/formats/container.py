"""Containers: what holds many conversations, or one in many pieces. Each is unrolled into lines of its own.

A line is an object that begins with the `id` of the message it brings, by which a message that changed is told from a
new one.
"""

import hashlib

import orjson

from ..files.json_document import line
from ..files.lines import Record, head_records
from . import folders
from .json_values import mapping

_NAME_LENGTH = 150


def row(number: str, **said: object) -> bytes:
    """A line of the values given, which keep their exact JSON where they are `exact`."""
    return line({"id": number, **said})


def header_of(head: bytes) -> Record:
    """What the first lines tell of the conversation as a whole, under that name."""
    return next(
        (mapping(record["conversation"]) for record in head_records(head) if "conversation" in record), Record()
    )


def exact(value: object) -> object:
    """JSON that a database holds as text or bytes, to stand in a line as it is; as text where it is none."""
    if not isinstance(value, bytes | str):
        return value
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace")
    return orjson.Fragment(data.replace(b"\n", b" ").replace(b"\r", b" "))


def mark_of(*told: object) -> int:
    """A positive number of 63 bits that stands for all that is told."""
    digest = hashlib.blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1


def file_name(number: str) -> str:
    """A file's name for a conversation's id, whatever that holds."""
    name = folders.safe(number.encode("utf-8", "replace").decode())
    return f"{name[:_NAME_LENGTH]}~{mark_of(number):x}.jsonl" if len(name) > _NAME_LENGTH else f"{name}.jsonl"
