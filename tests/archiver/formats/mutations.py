"""Damaged and rearranged transcripts, drawn from a transcript by a random generator with a fixed seed."""

import json
import random
from collections.abc import Callable, Iterator, Sequence

import orjson

Mutation = Callable[[random.Random, list[bytes]], bytes]


def joined(rows: Sequence[bytes], end: bytes = b"\n") -> bytes:
    """Return these rows as lines."""
    return b"".join(row + end for row in rows)


def truncated(random: random.Random, rows: list[bytes]) -> bytes:
    """Cut the file at any byte."""
    data = joined(rows)
    return data[: random.randrange(len(data) + 1)]


def cut_inside(random: random.Random, rows: list[bytes]) -> bytes:
    """Cut one line at any byte; other lines follow."""
    place = random.randrange(len(rows))
    rows[place] = rows[place][: random.randrange(len(rows[place]))]
    return joined(rows)


def without_lines(random: random.Random, rows: list[bytes]) -> bytes:
    """Remove some lines."""
    return joined([row for row in rows if random.random() < 0.7])


def reordered(random: random.Random, rows: list[bytes]) -> bytes:
    """Swap two lines."""
    first, second = random.randrange(len(rows)), random.randrange(len(rows))
    rows[first], rows[second] = rows[second], rows[first]
    return joined(rows)


def on_several_lines(random: random.Random, rows: list[bytes]) -> bytes:
    """Write one record with line feeds between its fields."""
    place = random.randrange(len(rows))
    rows[place] = json.dumps(orjson.loads(rows[place]), indent=1).encode()
    return joined(rows)


def with_nul_bytes(random: random.Random, rows: list[bytes]) -> bytes:
    """Insert NUL bytes between or inside lines."""
    data = joined(rows)
    place = random.randrange(len(data) + 1)
    return data[:place] + b"\0" * random.randrange(1, 9) + data[place:]


def with_other_line_ends(_: random.Random, rows: list[bytes]) -> bytes:
    """Begin with a byte order mark, and end the lines as Windows does."""
    return b"\xef\xbb\xbf" + joined(rows, b"\r\n")


def glued(random: random.Random, rows: list[bytes]) -> bytes:
    """Join two records on one line."""
    place = random.randrange(len(rows))
    return joined([*rows[:place], b"".join(rows[place : place + 2]), *rows[place + 2 :]])


def with_other_bytes(random: random.Random, rows: list[bytes]) -> bytes:
    """Replace some bytes, so that the text may be no UTF-8."""
    data = bytearray(joined(rows))
    for _ in range(random.randrange(1, 4)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


REARRANGED: tuple[Mutation, ...] = (
    truncated,
    cut_inside,
    without_lines,
    reordered,
    on_several_lines,
    with_nul_bytes,
    with_other_line_ends,
    glued,
)
"""Mutations that add no text."""
KEEPING_ORDER: tuple[Mutation, ...] = tuple(each for each in REARRANGED if each not in {reordered, glued})
"""Mutations after which an agent's two records of one text are still apart and in order."""
MUTATIONS: tuple[Mutation, ...] = (*REARRANGED, with_other_bytes)


def mutations_of(data: bytes, count: int, seed: int = 1) -> Iterator[tuple[Mutation, bytes]]:
    """Yield a number of mutations of a transcript."""
    rows, source = data.splitlines(), random.Random(seed)
    for number in range(count):
        mutation = MUTATIONS[number % len(MUTATIONS)]
        yield mutation, mutation(source, list(rows))
