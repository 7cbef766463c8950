"""Properties of the formats that are plain text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.document_formats import format_of

ROWS = st.sampled_from(
    ["# A", "## B b", "* C", "** D", "Title", "=====", "-----", "---", "", "  ", "x: y", ":k: v", "\u7a91"]
)
TEXTS = st.lists(ROWS | st.text("ab *#=-`>\u00e9\U0001f389", max_size=30), max_size=40).map("\n".join)


@pytest.mark.parametrize("suffix", [".md", ".rst", ".org", ".txt"])
@given(text=TEXTS)
def test_every_row_is_in_a_chunk(suffix: str, text: str) -> None:
    """Every row with text is in a chunk of its lines, or is a heading in a header path."""
    path = Path(f"x{suffix}")
    reader = format_of(path)
    found = reader.chunks(reader.read(text.encode(), path).sections)

    for number, row in enumerate(text.split("\n"), 1):
        chunks = [one for one in found if one.start_line <= number <= one.end_line]
        in_text = any(row.strip() in one.text for one in chunks)
        # A heading without text of its own is only in the paths of the chunks below it.
        in_path = not chunks and any(one.header_path for one in found)
        assert not row.strip() or in_text or in_path
