"""Source code is split into chunks at its units. The samples have real constructs of each language."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.code_chunks import CODE_LANGUAGES, chunks
from palaver.core import tokens
from palaver.core.document import Chunk, ChunkKind

SAMPLES = Path(__file__).with_name("code_samples")
SUFFIXES = {
    "bash": ".sh",
    "c": ".c",
    "c_sharp": ".cs",
    "cpp": ".cpp",
    "go": ".go",
    "java": ".java",
    "javascript": ".js",
    "kotlin": ".kt",
    "php": ".php",
    "python": ".py",
    "ruby": ".rb",
    "rust": ".rs",
    "swift": ".swift",
    "tsx": ".tsx",
    "typescript": ".ts",
}
languages = pytest.mark.parametrize("name", SUFFIXES)


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text("utf-8")


def chunks_of(name: str, text: str) -> list[Chunk]:
    return chunks(text, CODE_LANGUAGES[SUFFIXES[name]])


def described(found: list[Chunk]) -> list[str]:
    """Return one line for each chunk: lines, unit, name, signature, documentation, and the lines of a split unit."""
    return [
        f"{one.start_line}-{one.end_line} {one.unit} {one.name} | {one.signature} | {one.doc!r}{_whole(one)}"
        for one in found
    ]


def _whole(one: Chunk) -> str:
    """Return the lines of the whole unit, unless the chunk contains all of them."""
    is_whole = not one.is_named or (one.start_line <= one.unit_start and one.unit_end <= one.end_line)
    return "" if is_whole else f" | {one.unit_start}-{one.unit_end}"


def test_every_language_has_a_sample() -> None:
    """Each grammar reads at least one sample. Headers share the grammar of C++."""
    used = {CODE_LANGUAGES[suffix] for suffix in SUFFIXES.values()} | {CODE_LANGUAGES[".h"]}

    assert used == set(CODE_LANGUAGES.values())


@languages
def test_the_units_of_each_language_are_found(name: str) -> None:
    """Nested, decorated and generic units have their kind, qualified name, signature, lines and documentation."""
    expected = (SAMPLES / f"{name}.units").read_text("utf-8").splitlines()

    assert described(chunks_of(name, sample(name))) == expected


@languages
def test_a_file_that_is_broken_halfway_yields_the_units_before(name: str) -> None:
    """Units before a syntax error are the same as in the whole file, and the text after it is in chunks too."""
    text = sample(name)
    before, _, rest = text.partition("cut here")
    broken = f"{before}\n  (( = [{{ )\n{rest[: len(rest) // 2]}"
    last = before.count("\n")
    whole = [one for one in chunks_of(name, text) if one.end_line < last - 6]
    found = chunks_of(name, broken)

    assert len(whole) >= 4
    assert [one for one in found if one in whole] == whole
    assert "(( = [{ )" in "".join(one.text for one in found)


def test_a_file_that_does_not_parse_is_split_like_text() -> None:
    """A file with syntax errors and without units has chunks of code without a unit."""
    found = chunks_of("python", "}} this is ((( no code\n\nat all: [[[\n")

    assert [(one.kind, one.unit, one.start_line, one.end_line) for one in found] == [(ChunkKind.CODE, "", 1, 3)]


def test_a_huge_file_is_not_parsed() -> None:
    """A file of more than 4 MiB is split like text, because parsing it takes too much memory."""
    found = chunks_of("python", "x = 1\n" * (700 << 10))

    assert {one.unit for one in found} == {""}


def test_unclosed_brackets_are_no_trap() -> None:
    """A file of unclosed brackets, in which a search for units would take minutes, is split like text."""
    found = chunks_of("python", "(" * 200_000)

    assert {one.unit for one in found} == {""}


def test_a_large_function_is_split_into_blocks() -> None:
    """A large function is split into blocks of at most 512 tokens and 100 lines. The first has the documentation."""
    found = chunks_of("python", 'def long():\n    """Wait."""\n' + "    x = 1\n" * 400)

    assert {one.name for one in found} == {"long"}
    assert max(one.end_line - one.start_line + 1 for one in found) <= 100
    assert max(tokens.count(one.text) for one in found) <= 512
    assert [found[0].start_line, found[-1].end_line] == [1, 402]
    assert [one.doc for one in found] == ["Wait.", *[""] * (len(found) - 1)]


def test_only_a_large_function_is_split_into_inner_functions() -> None:
    """A function inside a small function is part of it. A large function is split at its inner functions."""
    inner = "  function inner() {\n    return 1;\n  }\n"
    filler = "  value = compute(value, other);\n" * 60

    assert [one.name for one in chunks_of("javascript", f"function outer() {{\n{inner}}}\n")] == ["outer"]
    names = [one.name for one in chunks_of("javascript", f"function outer() {{\n{inner}{filler}}}\n")]
    assert names[:2] == ["outer", "outer.inner"]
    assert set(names[2:]) == {"outer"}


def test_a_long_line_is_split() -> None:
    """A line of a megabyte is split into several chunks."""
    found = chunks_of("python", f"DATA = '{'x' * 20_000}'\n")

    assert max(len(one.text) for one in found) <= 4_000
    assert sum(len(one.text) for one in found) > 20_000


def test_deep_nesting_is_no_error() -> None:
    """Ten thousand nested brackets, and a thousand nested classes, are parsed without an error."""
    classes = "".join(f"{' ' * depth}class A{depth}:\n" for depth in range(1_000))

    for text in (f"x = {'(' * 10_000}1{')' * 10_000}\n", f"{classes}{' ' * 1_000}pass\n"):
        assert "".join("".join(one.text.split()) for one in chunks_of("python", text)) == "".join(text.split())


def rows_of(text: str) -> list[str]:
    return [row.strip() for row in text.split("\n") if row.strip()]


@given(st.sampled_from(sorted(SUFFIXES)), st.data())
def test_every_line_of_code_is_in_one_chunk(name: str, data: st.DataObject) -> None:
    """For any file, the chunks contain every line that is not blank exactly once, in order, with its number."""
    lines = [*sample(name).split("\n"), "}", ")", "'''", "/*", "\t{"]
    text = "\n".join(data.draw(st.lists(st.sampled_from(lines), max_size=30)))
    found = chunks_of(name, text)

    if all(one.unit for one in found):
        assert [row for one in found for row in rows_of(one.text)] == rows_of(text)
    else:  # Windows of text overlap.
        assert set(rows_of(text)) <= {row for one in found for row in rows_of(one.text)}
    source = text.split("\n")
    for one in found:
        assert rows_of(one.text) == rows_of("\n".join(source[one.start_line - 1 : one.end_line]))


def test_a_class_on_the_line_of_its_method_has_a_chunk() -> None:
    """A class whose first method begins on its own line is found by its name, and so are its methods."""
    for name, text in {
        "typescript": "class Kiln { heat() { return 1; } }\n",
        "java": "class Kiln { int heat() { return 1; }\n  int cool() { return 2; } }\n",
        "python": "class Kiln: heat = lambda self: 1\n",
        "c_sharp": "class Kiln { int Heat() { return 1; } }\n",
    }.items():
        found = [(one.unit, one.name) for one in chunks_of(name, text)]
        assert found[0] == ("class", "Kiln"), (name, found)
        assert name == "python" or ("method", "Kiln.Heat") in found or ("method", "Kiln.heat") in found, (name, found)
