"""Python source is split into chunks at functions and classes."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.python_chunks import chunks
from palaver.core import tokens
from palaver.core.document import Chunk, ChunkKind

MODULE = '''"""What it is for."""

import os

LIMIT = 3


# Why it is there.
@cached
def find(name: str, *, deep: bool = False,
         limit: dict[str, int] = {"a": 1}) -> str:
    """Find it."""
    return name


class Shelf:
    """Holds books."""

    size = 2

    def add(self, book: str) -> None:
        """Add one."""
'''


def named(found: list[Chunk]) -> list[tuple[str, str, int, int]]:
    """Return the unit, the name and the lines of each chunk."""
    return [(one.unit, one.name, one.start_line, one.end_line) for one in found]


def test_functions_and_classes_are_chunks() -> None:
    """Functions and classes are chunks with their decorators and comments. Other code belongs to the module."""
    found = chunks(MODULE)

    assert named(found) == [("module", "", 1, 5), ("function", "find", 8, 13), ("class", "Shelf", 16, 22)]
    assert {one.kind for one in found} == {ChunkKind.CODE}
    assert found[1].text.startswith("# Why it is there.\n@cached\ndef find")


def test_a_signature_is_one_line() -> None:
    """A signature ends at the final colon of the declaration, not at a colon inside it."""
    assert chunks(MODULE)[1].signature == (
        'def find(name: str, *, deep: bool = False, limit: dict[str, int] = {"a": 1}) -> str'
    )


def test_a_large_class_is_split_into_methods() -> None:
    """Method names include the class name. The rest of the class is a chunk too."""
    body = "\n".join(f"        value_{number} = compute(value_{number})" for number in range(60))
    found = chunks(
        f"class Large:\n    size = 1\n\n    def one(self):\n{body}\n\n    async def two(self):\n        pass\n"
    )

    assert [(one.unit, one.name) for one in found if one.name != "Large.one"] == [
        ("class", "Large"),
        ("method", "Large.two"),
    ]
    assert len([one for one in found if one.name == "Large.one"]) > 1


def test_a_large_function_is_split_into_blocks() -> None:
    """A large function is split into blocks of at most 512 tokens and 100 lines."""
    found = chunks("def long():\n" + "    x = 1\n" * 400)

    assert {one.name for one in found} == {"long"}
    assert max(one.end_line - one.start_line + 1 for one in found) <= 100
    assert max(tokens.count(one.text) for one in found) <= 512
    assert [found[0].start_line, found[-1].end_line] == [1, 401]


def test_invalid_code_is_split_at_top_level_definitions() -> None:
    """Invalid code, such as Python 2, is split at top-level definitions."""
    found = chunks("import os\n\ndef old(x):\n    print x\n\nclass Older:\n    def inner(self):\n        print self\n")

    assert named(found) == [("module", "", 1, 1), ("function", "old", 3, 4), ("class", "Older", 6, 8)]


def test_a_long_line_is_split() -> None:
    """A line of a megabyte is split into several chunks."""
    found = chunks(f"DATA = '{'x' * 20_000}'\n")

    assert max(len(one.text) for one in found) <= 4_000
    assert sum(len(one.text) for one in found) > 20_000


@given(
    st.lists(st.sampled_from([*MODULE.split("\n"), "    def x(self): pass", ")", "'''"]), max_size=30).map("\n".join)
)
def test_every_line_of_code_is_in_one_chunk(text: str) -> None:
    """For any file, the chunks contain every line of code exactly once, in order."""
    rows = [row.strip() for one in chunks(text) for row in one.text.split("\n") if row.strip()]

    assert rows == [row.strip() for row in text.split("\n") if row.strip()]
