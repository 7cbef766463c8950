"""Masking: a masked line is as long as it was, still JSON, and holds nothing that redaction would take out."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.parse.lines import LIMIT
from palaver.archiver.privacy.masker import Masker, is_json, is_masked_from
from palaver.archiver.redaction import Redactor

from ..redaction.planted import TOKENS, pem

REDACTOR = Redactor(bytes(32))
MASKER = Masker(REDACTOR)
TOKEN = TOKENS["github-pat"](random.Random(3))
SECRETS = {kind: make(random.Random(7)) for kind, make in TOKENS.items()} | {"private-key": pem(random.Random(7))}
TAG = "private"


def wrapped(secret: str) -> Iterator[bytes]:
    """A secret as agents write it: in prose, in JSON within JSON, among colours, in escapes, as a setting."""
    yield orjson.dumps({"type": "assistant", "text": f"see\n{secret}\nthere"})
    yield orjson.dumps({"call": {"input": orjson.dumps({"command": ["echo", f"a\n{secret}"]}).decode()}})
    yield orjson.dumps({"output": f"\x1b[31m{secret}\x1b[0m 한글"})
    yield orjson.dumps({"한글": f"한글 {secret}", "n": 1, secret: None})
    yield b'{"text":"%b"}' % "".join(f"\\u{ord(letter):04x}" for letter in f" {secret} ").encode()
    yield f"export X={secret}".encode()


def parts(secret: str) -> list[bytes]:
    return [line.encode() for line in secret.splitlines() if not line.startswith("-")]


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_is_left_wherever_it_stands(kind: str) -> None:
    """Every kind of secret is masked in place, to the same placeholder that redaction gives, and nothing moves."""
    for line in wrapped(SECRETS[kind]):
        masked = MASKER.masked(line + b"\n")

        assert len(masked) == len(line) + 1
        assert is_json(masked) == is_json(line)
        assert not [part for part in parts(SECRETS[kind]) if part in masked]
        assert not REDACTOR.redact(_told(masked)).findings
        assert MASKER.masked(masked) == masked


def _told(line: bytes) -> str:
    return "\n".join(map(str, orjson.loads(line).values())) if is_json(line) else line.decode()


def test_the_mark_is_the_placeholder_of_the_secret() -> None:
    """Who reads a masked copy finds the placeholder that the database has for the same secret."""
    placeholder = str(REDACTOR.redact(TOKEN).findings[0])

    assert MASKER.masked(orjson.dumps({"a": TOKEN})) == b'{"a":"%b"}' % placeholder.encode().ljust(len(TOKEN), b"*")


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (b'["curl","-u","me:s3cretpass","http://x"]\n', b'["curl","-u","me:**********","http://x"]\n'),
        (b'{"password":"Tr0ub4dor&3x","b":1}\n', b'{"password":"************","b":1}\n'),
        (b'{"a":"x","n":12345678901234567890}\n', b'{"a":"x","n":12345678901234567890}\n'),
        (b"     \n", b"     \n"),
        (b"\n", b"\n"),
    ],
)
def test_names_and_neighbours_count(line: bytes, masked: bytes) -> None:
    """A secret that only its name, or the argument before it, gives away is masked; what is none stays."""
    assert MASKER.masked(line) == masked


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (b'{"a":"x <private>y</private> z"}\n', b'{"a":"x [private]*********** z"}\n'),
        (
            b'{"a":"x \\u003cprivate\\u003ey\\u003c/private\\u003e z"}\n',
            b'{"a":"x [private]******************************* z"}\n',
        ),
        (b'{"type":"assistant","a":"x <private>y"}\n', b'{"type":"assistant","a":"x <private>y"}\n'),
        (b'{"type":"user","a":"x <private>y"}\n', b'{"type":"user","a":"x [private]*"}\n'),
        (
            b'{"role":"user","c":[{"t":"text","text":"<private>"},{"t":"text","text":"mine"}],"id":"1"}\n',
            b'{"role":"user","c":[{"t":"text","text":"[private]"},{"t":"text","text":"****"}],"id":"1"}\n',
        ),
    ],
)
def test_private_spans_are_masked(line: bytes, masked: bytes) -> None:
    """Closed spans are, and in what a person typed an open one to the end of the message; fields and ids stay."""
    assert MASKER.masked(line) == masked


@given(st.integers(0, 200))
def test_what_breaks_off_shows_no_half_of_a_secret(end: int) -> None:
    """A line that is still being written may end anywhere: what may be half a secret is masked, and nothing else."""
    line = orjson.dumps({"type": "user", "said": "what comes first", "key": f"it is {TOKEN}", "after": TOKEN})
    masked = MASKER.masked(line[:end])

    assert len(masked) == min(end, len(line))
    assert TOKEN[:10].encode() not in masked
    assert end < 60 or b"what comes first" in masked


@given(
    st.recursive(
        st.text() | st.sampled_from([*SECRETS.values(), f"<{TAG}>", f"</{TAG}>", "\x1b[1m", "\\", '"', "{"]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["password", "type", "user", "text"]), inner, max_size=4)
            | inner.map(lambda value: orjson.dumps(value).decode() if not isinstance(value, str) else f"a {value}\n")
        ),
        max_leaves=8,
    ),
    st.booleans(),
)
def test_masking_keeps_length_and_structure(value: object, ascii_: bool) -> None:
    """Whatever is said, a masked line is as long, says as many things in the same places, and masks to itself."""
    try:
        line = orjson.dumps(value)
    except TypeError:
        return  # a lone surrogate
    if ascii_:
        line = line.decode().encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00")
    masked = MASKER.masked(line + b"\n")

    assert len(masked) == len(line) + 1
    assert is_json(masked) or not is_json(line)
    assert MASKER.masked(masked) == masked
    assert is_masked_from(io.BytesIO(masked), io.BytesIO(line + b"\n"))


@given(st.binary(max_size=300), st.integers(0, 300))
def test_anything_is_masked_without_moving(data: bytes, at: int) -> None:
    """What is no JSON, and no text, is masked as well."""
    line = (data[:at] + b" " + TOKEN.encode() + b" " + data[at:]).replace(b"\n", b"") + b"\n"
    masked = MASKER.masked(line)

    assert len(masked) == len(line)
    assert TOKEN.encode() not in masked


def test_only_masks_may_differ() -> None:
    """A copy is known as that of a file when all that differs is masked or erased, and the file is at least as long."""
    line = orjson.dumps({"key": TOKEN}) + b"\n"
    masked = MASKER.masked(line)
    blank = b" " * (len(line) - 1) + b"\n"

    assert is_masked_from(io.BytesIO(masked + blank), io.BytesIO(line + line + b"more"))
    assert not is_masked_from(io.BytesIO(masked + line), io.BytesIO(line))
    assert not is_masked_from(io.BytesIO(masked), io.BytesIO(line.replace(b"key", b"kez")))
    assert is_masked_from(io.BytesIO(masked + b"[sec"), io.BytesIO(line + b"1234"), unfinished=True)
    assert not is_masked_from(io.BytesIO(masked + b"[sec"), io.BytesIO(line + b"1234"))


def test_a_line_that_nobody_can_read_is_masked_as_a_whole(tmp_path: Path) -> None:
    """A line longer than the limit of the parser is asterisks, and its neighbours are what they were."""
    path = tmp_path / "long"
    path.write_bytes(b"{}\n" + b"x" * (LIMIT + 5) + b"\n[]\n")

    with path.open("rb") as file:
        told = b"".join(MASKER.lines(file))

    assert told == b"{}\n" + b"*" * (LIMIT + 5) + b"\n[]\n"
