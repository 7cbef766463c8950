"""Decoder of Protocol Buffers messages, for agents that store them in databases.

A schema names the fields of a message that are decoded: `{1: Field("id"), 5: Field("parts", PART, repeated=True)}`.
Other fields are left out. `https://protobuf.dev/programming-guides/encoding` specifies the encoding.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from .json_values import listing

DEPTH = 32
"""Maximum nesting of messages."""

Decoded: TypeAlias = dict[str, object]


class Field(Struct, frozen=True):
    """Field of a message. Without `schema`, it is text or an integer."""

    name: str
    schema: "Schema | None" = None
    repeated: bool = False


Schema: TypeAlias = Mapping[int, Field]


def decoded(data: bytes, schema: Schema, depth: int = 0) -> Decoded:
    """Return the fields of a message by name. Raises `ValueError`."""
    if depth > DEPTH:
        raise ValueError("a message is nested too deeply")
    message: Decoded = {}
    for number, value in fields(data):
        if (field := schema.get(number)) is None:
            continue
        readable: object = value
        if isinstance(value, bytes):
            is_message = field.schema is not None
            readable = decoded(value, field.schema or {}, depth + 1) if is_message else value.decode("utf-8", "replace")
        message[field.name] = [*listing(message.get(field.name)), readable] if field.repeated else readable
    return message


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield the number and the value of each field of a message. Raises `ValueError`."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind, -1)
        content = data[at : at + length]
        if length < 0 or len(content) < length:
            raise ValueError("the message is damaged")
        at += length
        yield number, content if kind == 2 else struct.unpack("<d" if length == 8 else "<f", content)[0]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the message is damaged")
