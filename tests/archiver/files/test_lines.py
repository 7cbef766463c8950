"""Line numbers and offsets are exact, and every line yields records or a reason."""

import io
import json
import logging
import os
import sys
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver import lines as module
from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.formats.codex import Codex
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.lines import (
    HEAD_LINES,
    Line,
    Reason,
    decode,
    document_lines,
    head_records,
    opened,
    records,
    split,
)
from palaver.archiver.store import Store
from palaver.core.home import Home

from ...cases import for_each
from ...shared import SHARED
from ..formats.codex.codex_lines import SESSION, agent_reply, meta, user_prompt
from ..formats.reading import jsonl

SUITE = SHARED / "hostile" / "jsontestsuite.tar.gz"


def lines(data: bytes, limit: int = 1000) -> list[Line]:
    return list(split(io.BytesIO(data), limit=limit))


def test_byte_ranges_include_the_line_end() -> None:
    """A line's byte range includes its line end, and its data does not."""
    found = lines(b"one\ntwo\r\n\nlast")

    expected = [(1, 0, 4, b"one"), (2, 4, 9, b"two"), (3, 9, 10, b""), (4, 10, 14, b"last")]
    assert expected == [(line.number, line.start, line.end, line.data) for line in found]


def test_only_a_last_line_can_be_incomplete() -> None:
    """A last line without a line end is marked as incomplete."""
    assert [line.complete for line in lines(b"a\nb")] == [True, False]
    assert [line.complete for line in lines(b"a\nb\n")] == [True, True]


def test_bytes_written_meanwhile_are_no_new_line(tmp_path: Path) -> None:
    """Reading a growing file ends at its incomplete line."""
    path = tmp_path / "growing.jsonl"
    path.write_bytes(b"one\nhalf")
    found: list[tuple[bytes, bool]] = []
    with path.open("rb") as reading, path.open("ab") as writing:
        for line in split(reading):
            found.append((line.data, line.complete))
            if not line.complete:
                writing.write(b"-done\nthree\n")
                writing.flush()

    assert found == [(b"one", True), (b"half", False)]


def test_nothing_but_a_newline_byte_ends_a_line() -> None:
    """Carriage returns inside, form feeds and Unicode line separators stay part of their line."""
    content = "a\rb\x0b\x0c\x85\u2028\u2029c".encode()

    assert [line.data for line in lines(content + b"\n")] == [content]


def test_a_byte_order_mark_is_removed() -> None:
    """A byte order mark is removed at byte 0 only, and its bytes belong to the first line's range."""
    first, second = lines(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n")

    assert (first.data, first.end) == (b"{}", 6)
    assert second.data == b"\xef\xbb\xbf{}"
    assert decode(second.data) == [{}]


def test_reading_can_start_at_any_line() -> None:
    """Reading from a line yields it and all later lines, with the same numbers and offsets."""
    data = b"one\ntwo\nthree\n"

    assert list(split(io.BytesIO(data), start_byte=4, start_line=2)) == lines(data)[1:]


@given(st.lists(st.binary(max_size=30).filter(lambda data: b"\n" not in data)), st.binary(max_size=5))
def test_lines_tile_the_file(content: list[bytes], tail: bytes) -> None:
    """Every byte belongs to exactly one line, for any content and any line limit."""
    data = b"".join(each + b"\n" for each in content) + tail.replace(b"\n", b"")
    found = lines(data, limit=10)

    assert [line.start for line in found] == [0, *(line.end for line in found)][: len(found)]
    assert sum(line.end - line.start for line in found) == len(data)
    count = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert [number for line in found for number in line.numbers] == list(range(1, count + 1))
    for line in (line for line in found if line.line_count == 1):
        raw = data[line.start : line.end].removesuffix(b"\n")
        assert line.oversized == (len(raw) > 10)
        assert line.oversized or line.data in {raw.removesuffix(b"\r"), raw.removeprefix(b"\xef\xbb\xbf")}


class LongLine(io.RawIOBase):
    """Virtual file with one very long line between two short lines, generated while it is read."""

    def __init__(self, size: int) -> None:
        self._at, self._end, self._last = 0, 6 + size, b"\nlast\n"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return offset + whence

    def readinto(self, buffer: Any, /) -> int:
        if self._at == 0:
            content = b"first\n"
        elif self._at < self._end:
            content = b"x" * min(len(buffer), self._end - self._at)
        else:
            content = self._last[self._at - self._end :]
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def test_an_oversized_line_is_not_kept_in_memory() -> None:
    """Only the offsets of a line of 200 MB are kept, and the next line is read as usual."""
    size, limit = 200 * 1024 * 1024, 1024 * 1024
    tracemalloc.start()
    first, long, last = split(io.BufferedReader(LongLine(size)), limit=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (first.data, last.data, last.number) == (b"first", b"last", 3)
    assert (long.oversized, long.data, long.end - long.start) == (True, b"", size + 1)
    assert (last.start, last.end) == (7 + size, 12 + size)
    assert records(long) is Reason.OVERSIZED
    assert peak < 4 * limit


@for_each(
    "data, expected",
    [
        (b"", Reason.BLANK),
        (b"  \t", Reason.BLANK),
        (b"\0\0\0\0", Reason.BLANK),
        (b"hello", Reason.NOT_JSON),
        (b"{'a': 1}", Reason.NOT_JSON),
        (b"3", Reason.NOT_AN_OBJECT),
        (b"null", Reason.NOT_AN_OBJECT),
        (b'["a"]', Reason.NOT_AN_OBJECT),
        (b"NaN", Reason.NOT_AN_OBJECT),
        (b'{"a": "b', Reason.CUT_SHORT),
        (b'{"a": {"b": 1}', Reason.CUT_SHORT),
        (b'{"a": {"b": 1}, "c": "d', Reason.CUT_SHORT),
        (b'{"a": [{"b": 1}, {"c', Reason.CUT_SHORT),
        (b'{"a": tru, "b": {"c": 1}, "d": 2}', Reason.NOT_JSON),
        (b"[" * 100_000, Reason.TOO_DEEP),
        (b'{"a":' * 100_000, Reason.TOO_DEEP),
    ],
)
def test_a_line_without_a_record_has_a_named_reason(data: bytes, expected: Reason) -> None:
    """An unreadable line has a reason, and parts of a truncated record are not records."""
    assert decode(data) is expected


@for_each(
    "data, expected",
    [
        (b'{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}]),
        (b'{"a": 1} \t{"b": 2} {"c": 3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
        (b'{"a": 1}{"b": "cut', [{"a": 1}]),
        (b'{"a": "cu{"b": {"c": 2}}', [{"b": {"c": 2}}]),
        (b'{"a": tru{"b": 2}{"c": 3}', [{"b": 2}, {"c": 3}]),
        (b'{"a": {"x": 1}, {"b": 2}', [{"b": 2}]),
        (b'junk{"b": 2}', [{"b": 2}]),
        (b'3{"b": 2}', [{"b": 2}]),
        (b'\0\0{"a": 1}\0', [{"a": 1}]),
        (b'{"a": "\\ud83d"}', [{"a": "\ufffd"}]),
        (b'{"\\udc88": ["x\\udc88y"]}', [{"\ufffd": ["x\ufffdy"]}]),
        (b'{"a": "\\ud83d\\ude00 \\ud83d"}', [{"a": "\U0001f600 \ufffd"}]),
        (b'{"a": "\xff\xfe"}', [{"a": "\ufffd\ufffd"}]),
        (b'{"a": "x\ty"}', [{"a": "x\ty"}]),
        (b'{"a": NaN, "b": -Infinity}', [{"a": None, "b": None}]),
        (b'{"a": 1, "a": 2}', [{"a": 2}]),
        (b'{"a": "\xe2\x80\xa8"}', [{"a": "\u2028"}]),
    ],
)
def test_damaged_lines_are_recovered(data: bytes, expected: list[dict[str, object]]) -> None:
    """Joined objects, damaged text and invalid JSON are recovered as far as possible."""
    assert decode(data) == expected


def test_integers_of_any_length_are_read() -> None:
    """An integer of ten thousand digits is read, also on a line with invalid JSON."""
    found = decode(b'{"n": ' + b"9" * 10_000 + b', "s": "\\ud83d"}')

    assert isinstance(found, list)
    assert found[0]["s"] == "\ufffd"


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data: bytes) -> None:
    """Any bytes yield objects with valid text, or a reason."""
    found = decode(data)

    assert isinstance(found, Reason) or all(orjson.dumps(record) for record in found)


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()


@given(st.lists(st.dictionaries(st.text(), scalars | st.lists(scalars)), min_size=1, max_size=3))
def test_joined_objects_are_all_found(joined: list[dict[str, object]]) -> None:
    """The reader returns every object that was written on the line, with equal values."""
    assert decode(b"".join(map(orjson.dumps, joined))) == joined


def test_the_head_is_the_first_records() -> None:
    """The head contains only the first lines. Empty and broken lines do not count as records."""
    data = b'\xef\xbb\xbf\n{"n": 0}\nbroken\n' + b'{"n": 1}\n' * 100 + b'{"cut'

    assert list(head_records(data)) == [{"n": 0}] + [{"n": 1}] * (HEAD_LINES - 2)


@pytest.mark.skipif(not SUITE.exists(), reason="needs the shared hostile input")
def test_every_file_of_the_json_suite_is_read() -> None:
    """Valid objects equal the results of other parsers. Other content is repaired or has a reason."""
    counted = 0
    with tarfile.open(SUITE) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is None or not member.name.endswith(".json"):
                continue
            data, name = content.read(), Path(member.name).name
            found = decode(data)
            counted += 1
            if name.startswith("y_") and data.strip().startswith(b"{"):
                assert found == [orjson.loads(data)], name
            assert isinstance(found, Reason) or orjson.dumps(found), name

    assert counted > 100


BREAK = "\ue000"
"""Character in place of which a line feed is written without an escape."""


def broken(value: object, end: str = "\n") -> bytes:
    """Return a JSON line with unescaped line ends in place of each `BREAK`."""
    return json.dumps(value, ensure_ascii=False).replace(BREAK, end).encode() + b"\n"


def test_lines_of_one_record_are_joined() -> None:
    """A record with unescaped line ends, in strings or between them, is one line with the numbers of all its lines."""
    whole = b'{"a": 1}\n'
    cases: dict[bytes, object] = {
        broken({"a": f"x{BREAK}y{BREAK}{BREAK}z", "b": f"{BREAK}"}): {"a": "x\ny\n\nz", "b": "\n"},
        broken({"a": f"x{BREAK}y"}, "\r\n"): {"a": "x\ny"},
        broken({"a": f'if (x) {{"y"}}{BREAK}{{{BREAK}}}', "b": 1}): {"a": 'if (x) {"y"}\n{\n}', "b": 1},
        broken({"a": f"c:\\{BREAK}{{}}{BREAK}d"}): {"a": "c:\\\n{}\nd"},
        broken({"a": f'"\\"{BREAK}"'}): {"a": '"\\"\n"'},
        broken({"a": {"b": [f"{BREAK}]"]}}): {"a": {"b": ["\n]"]}},
        json.dumps({"a": [{"b": "c"}, {}], "d": "{"}, indent=2).encode() + b"\n": {"a": [{"b": "c"}, {}], "d": "{"},
        b'{"a": {"b": 1},\n "c": 2}\n': {"a": {"b": 1}, "c": 2},
    }
    wrong: dict[bytes, object] = {}
    for data, value in cases.items():
        found = list(split(io.BytesIO(whole + data + whole)))
        read = [records(line) for line in found]
        numbers = [line.numbers for line in found]
        count = data.count(b"\n")
        expected = [range(1, 2), range(2, 2 + count), range(2 + count, 3 + count)]
        if read != [[{"a": 1}], [value], [{"a": 1}]] or numbers != expected:
            wrong[data] = read, numbers

    assert wrong == {}
    assert list(head_records(b"".join(cases))) == list(cases.values())


def test_other_lines_are_not_joined() -> None:
    """A truncated record, an unfinished record, and text that is no JSON take no other line with them."""
    first, last = b'{"a": "first"}', b'{"a": "last"}'
    cases = {
        "truncated": [b'{"a": "x', last],
        "truncated twice": [b'{"a": "x', b'{"b": "y', b"z", last],
        "garbage": [b"{", b"no", b"json", last],
        "closed but invalid": [b'{"a": "x', b"y}", b'z" b}', last],
        "nul bytes": [b"\0\0", b'{"a": "x', b"\0\0", last],
        "glued": [b'{"a": "x{"a": 1}', last],
        "unfinished": [first, b'{"a": "x', b"y", b""],
    }
    found = {name: lines(b"\n".join([first, *rows, last]) + b"\n") for name, rows in cases.items()}
    unfinished = lines(first + b'\n{"a": "x\ny\nz')

    assert {name: [line.data for line in each] for name, each in found.items()} == {
        name: [first, *rows, last] for name, rows in cases.items()
    }
    assert [(line.data, line.complete) for line in unfinished] == [
        (first, True),
        (b'{"a": "x', True),
        (b"y", True),
        (b"z", False),
    ]


def test_joining_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record on too many lines, or with too many bytes, is not joined."""
    data = broken({"a": BREAK.join("x" * 9)})

    found = [len(lines(data))]
    for name, limit in (("JOINED_LINES", 8), ("JOINED_BYTES", 15)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, limit)
            found.append(len(lines(data)))

    assert found == [1, 9, 9]


TEXT = st.text(st.characters(exclude_categories=["Cs", "Co"]) | st.sampled_from('"\\{}[],: \n'))


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1))
def test_any_text_with_unescaped_line_feeds_is_read(values: list[tuple[str, str]]) -> None:
    """Records are read whatever their texts contain, although no line feed in them is escaped."""
    rows = [broken({"a": one.replace("\n", BREAK), "b": [two.replace("\n", BREAK)]}) for one, two in values]
    found = list(split(io.BytesIO(b"".join(rows))))

    assert [records(line) for line in found] == [[{"a": one, "b": [two]}] for one, two in values]
    assert [line.line_count for line in found] == [row.count(b"\n") for row in rows]


# A conversation in one JSON document is read as lines.


MESSAGES = [{"id": "a", "text": "Hi"}, {"id": "b", "text": "Hello"}]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def json_document_lines(data: bytes) -> list[object]:
    return [json.loads(row) for row in document_lines(io.BytesIO(data)).read().splitlines()]


def test_plain_fields_of_a_document_come_first() -> None:
    """Each object in a document's lists is a line. Other lists stay with the plain fields."""
    document = {"id": "s", "messages": MESSAGES, "title": "T", "folders": ["/a", "/b"], "empty": []}

    assert json_document_lines(json.dumps(document, indent=2).encode()) == [
        {"id": "s", "title": "T", "folders": ["/a", "/b"], "empty": []},
        *MESSAGES,
    ]


def test_each_element_of_a_list_becomes_a_line() -> None:
    """Each element of a list becomes a line, whatever its type."""
    assert json_document_lines(b'[{"a": 1}, 2, null]') == [{"a": 1}, 2, None]


@pytest.mark.parametrize("data", [b'{"messages": [{"id": "a"},\n{"id"', b"", b"{\n\n}}", b"[" * 100_000])
def test_a_damaged_document_is_one_unfinished_line(data: bytes) -> None:
    """A damaged document is treated like a document that is still being written."""
    found = list(split(document_lines(io.BytesIO(data))))

    assert [line.complete for line in found] == [False] * bool(data)


@given(JSON)
def test_every_value_round_trips(value: object) -> None:
    """Values are unchanged by the conversion to json_document_lines, including lone surrogates."""
    elements = cast("list[object]", value) if isinstance(value, list) else [value]

    assert json_document_lines(json.dumps(elements).encode()) == elements


def test_lone_surrogates_are_repaired_when_lines_are_read() -> None:
    """Lone surrogates in documents are repaired as in other transcripts."""
    (line,) = split(document_lines(io.BytesIO(b'[{"text": "\\ud83d"}]')))

    assert records(line) == [{"text": "\ufffd"}]


def test_a_file_is_a_document_by_its_name(tmp_path: Path) -> None:
    """The file suffix identifies a document, also in the raw archive."""
    for name in ("a.json", "a.jsonl"):
        (tmp_path / name).write_bytes(b'{\n"id": "s"}')

    with opened(tmp_path / "a.json") as document, opened(tmp_path / "a.jsonl") as file:
        assert document.read() == b'{"id":"s"}\n'
        assert file.read() == b'{\n"id": "s"}'


# Compressed transcripts are decompressed while they are read.


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = jsonl([meta(), *user_prompt("One"), *agent_reply("Done."), *user_prompt("Two")])
NAME = f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl"


def packed(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstd.compress(data))
    return path


def test_a_file_of_another_name_is_opened_as_it_is(tmp_path: Path) -> None:
    """A file without the suffix `.zst` is read unchanged."""
    path = packed(tmp_path / "a.jsonl", DATA)

    with opened(path) as file:
        assert file.read() == path.read_bytes()


@given(data=st.binary(max_size=5000), places=st.lists(st.integers(0, 6000), max_size=5))
def test_any_offset_of_the_content_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, places: list[int]
) -> None:
    """Seeking in a compressed file works forwards and backwards, as in an uncompressed file."""
    path = packed(tmp_path_factory.mktemp("packed") / "a.jsonl.zst", data)

    with opened(path) as file:
        for place in places:
            file.seek(place)
            assert file.read(7) == data[place : place + 7]


@pytest.mark.parametrize("damage", ["cut", "garbled", "not compressed"])
def test_a_damaged_file_ends_where_it_cannot_be_read(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file ends early with a warning in the log, without an exception."""
    data = os.urandom(1 << 20)
    path = packed(tmp_path / "a.jsonl.zst", data)
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes({"cut": whole[:half], "garbled": whole[:half] + b"\xff" * half}.get(damage, DATA))

    with caplog.at_level(logging.WARNING), opened(path) as file:
        content = file.read()
        file.seek(len(data))

    assert data.startswith(content)
    assert len(content) < len(data)
    assert "is damaged after" in caplog.text


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.make()
    return Store.create(home.database)


def ingest(store: Store, tmp_path: Path) -> list[str]:
    raw = RawArchive(tmp_path / "home" / "archive")
    pass_ = Ingest(store, raw).run(in_paths([tmp_path / "sessions"]))
    assert pass_.problems == []
    return [each.exchange.prompt for each in store.exchanges.load(store.items.all_keys()).values()]


def test_a_compressed_rollout_is_copied_exactly_and_read_decompressed(store: Store, tmp_path: Path) -> None:
    """The copy has the bytes of the compressed file. Line numbers refer to the decompressed content."""
    path = packed(tmp_path / "sessions" / f"{NAME}.zst", DATA)

    assert ingest(store, tmp_path) == ["One", "Two"]
    (source,) = store.sources.by_path().values()
    assert (tmp_path / "home" / "archive" / source.archived).read_bytes() == path.read_bytes()
    assert (source.lines, source.parsed, source.pending) == (DATA.count(b"\n"), len(DATA), 0)
    assert store.sources.totals() == (1, path.stat().st_size, source.lines, 0)
    assert recognised(path) == "codex"
    store.close()


def recognised(path: Path) -> str:
    (found,) = in_paths([path])
    known = found.recognise()
    assert known is not None
    return known.agent


def test_a_rollout_that_is_compressed_later_adds_nothing(store: Store, tmp_path: Path) -> None:
    """All lines of the compressed file count as repeated, because it belongs to the same session."""
    plain = tmp_path / "sessions" / NAME
    plain.parent.mkdir()
    plain.write_bytes(DATA)
    before = ingest(store, tmp_path)
    packed(plain.with_name(f"{NAME}.zst"), DATA)
    plain.unlink()

    assert ingest(store, tmp_path) == before == ["One", "Two"]
    assert store.sessions.find("codex", SESSION) is not None
    assert len(store.sources.by_path()) == 2
    store.close()


def test_a_rollout_in_two_storage_formats_is_read_once(tmp_path: Path) -> None:
    """If an uncompressed and a compressed file exist, only the uncompressed file is read."""
    packed(tmp_path / f"{NAME}.zst", DATA)
    (tmp_path / NAME).write_bytes(DATA)

    assert [path.name for path in Codex().transcripts(tmp_path)] == [NAME]
