"""Front matter: an edit preserves all other characters."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from palaver.observe.mnemonics.mnemonics_folder import MemoryFile, YamlInvalid

from ...cases import for_each

AT, LATER = "2026-02-16T10:30:00.000Z", "2026-03-01T00:00:00.000Z"
LINES = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=30)
WORDS = LINES.map(lambda text: " ".join(text.split())).filter(bool)
BODIES = st.text(st.characters(exclude_categories=["Cs"]), max_size=300).map(str.strip)


@given(body=BODIES, tags=st.lists(WORDS, max_size=4, unique=True))
def test_written_front_matter_is_read_back(body: str, tags: list[str]) -> None:
    """Any tags and content are read back unchanged, and other YAML parsers accept the file."""
    file = MemoryFile.new(body, "learning", tuple(tags), AT)
    again = MemoryFile.parse(file.text)

    assert (again.body, again.declared, again.tags, again.created) == (body, "learning", tuple(tags), AT)
    front: dict[str, object] = yaml.safe_load(file.front)
    assert (front["tags"], list(front)) == (tags, ["memory_type", "tags", "created", "modified"])


@given(
    text=st.text(max_size=200)
    | st.text("-:[]{}#&*!|>'\"%@` \n\tab", max_size=60).map(lambda text: f"---\n{text}\n---\nx")
)
def test_any_text_is_read_or_rejected(text: str) -> None:
    """Any file content is either parsed or rejected with `YamlInvalid`, and an edit changes only the edited values."""
    try:
        file = MemoryFile.parse(text)
        changed = file.edited("another body", LATER, "issue")
    except YamlInvalid:
        return
    assert (changed.body, changed.declared, changed.tags) == ("another body", "issue", file.tags)
    assert MemoryFile.parse(changed.text) == changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"modified: {LATER}\nmemory_type: issue\n"),
        ("a: 1\n", f"a: 1\nmodified: {LATER}\nmemory_type: issue\n"),
        ("memory_type: learning  # why\nb: [ 1,2 ]\n", f"memory_type: issue  # why\nb: [ 1,2 ]\nmodified: {LATER}\n"),
        ("memory_type: 'x y'\nmodified: 2020-01-01\n", f"memory_type: issue\nmodified: {LATER}\n"),
        ("memory_type:\nmodified: 1\n", f"memory_type: issue\nmodified: {LATER}\n"),
        ("memory_type: x\r\nmodified: 1\r\n", f"memory_type: issue\r\nmodified: {LATER}\r\n"),
    ],
)
def test_only_the_values_that_change_are_changed(before: str, after: str) -> None:
    """An edit preserves comments, quotes, order, line ends and unknown keys."""
    assert MemoryFile.parse(f"---\n{before}---\nx\n").edited("y", LATER, "issue").front == after


@for_each(
    "front, message",
    [
        ("tags: [a", "invalid YAML in line 3: "),
        ("- a\n- b", "not a mapping of keys to values"),
        ("memory_type: [a]", "memory_type is not a single value"),
        ("tags:\n  - a: b", "tags is not a list of words"),
        ("a: 1\na: 2", "has a duplicate key"),
        ("a: *nothing", "invalid YAML in line 2: "),
        ("tags: " + "[" * 9_000, "more than 128 brackets"),
        ("- " * 8_000, "invalid YAML: RecursionError"),
        ("a: " + "x" * 20_000, "more than 16,384 characters"),
        ("a: \x01", "invalid YAML"),
    ],
)
def test_errors_of_broken_front_matter_have_a_line(front: str, message: str) -> None:
    """The error message for broken front matter contains the line number in the file."""
    with pytest.raises(YamlInvalid, match=message):
        MemoryFile.parse(f"---\n{front}\n---\nx")


@pytest.mark.parametrize("front", ["{memory_type: x}", "memory_type: &a x\nb: *a", "memory_type: |\n  x\nb: 1"])
def test_unusual_values_are_edited_correctly_or_rejected(front: str) -> None:
    """Editing an unusual YAML value either raises an error or produces the requested value."""
    file = MemoryFile.parse(f"---\n{front}\n---\nx")
    try:
        changed = file.edited("y", LATER, "issue")
    except YamlInvalid:
        return
    assert yaml.safe_load(changed.front)["memory_type"] == "issue"
    assert set(yaml.safe_load(file.front)) <= set(yaml.safe_load(changed.front))


def test_files_without_front_matter_are_all_body() -> None:
    """A horizontal rule at the start is not front matter, and commas can separate tags."""
    assert MemoryFile.parse("---\n\nA rule above\n").body == "---\n\nA rule above"
    assert MemoryFile.parse("\ufeffplain\n").body == "plain"
    assert MemoryFile.parse("---\ntags: a, b c\n---\n").tags == ("a", "b c")
