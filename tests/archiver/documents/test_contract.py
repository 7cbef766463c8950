"""Contract of all document readers, which every new format must fulfil."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.documents.document_formats import SUFFIXES, format_of
from palaver.archiver.documents.isolated_parser import IsolatedParser
from palaver.core.errors import DocumentUnreadable

from .test_document_formats import pdf_with_texts
from .test_docx_sections import docx, paragraph

CELL = {"cell_type": "markdown", "source": "# Kiln\nHeat it slowly."}
HTML = b"<title>Guide</title><h1>Kiln</h1><p>Heat it slowly."
DOCUMENTS = {
    ".md": b"---\ntitle: Guide\n---\n# Kiln\nHeat it slowly.\n",
    ".markdown": b"---\ntitle: Guide\n---\n# Kiln\nHeat it slowly.\n",
    ".rst": b"Guide\n=====\n\nKiln\n----\nHeat it slowly.\n",
    ".org": b"#+title: Guide\n* Kiln\nHeat it slowly.\n",
    ".txt": b"Heat it slowly.\n",
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".ipynb": json.dumps({"nbformat": 4, "metadata": {"title": "Guide"}, "cells": [CELL]}).encode(),
    ".docx": docx(paragraph("Kiln", "berschrift1") + paragraph("Heat it slowly.")),
    ".pdf": pdf_with_texts("Heat it slowly."),
}
"""A document of each format, except source code, with a heading and a title if the format has them."""


def test_every_format_has_a_document() -> None:
    """A format that is not source code is in this contract."""
    code = {suffix for suffix in SUFFIXES if suffix not in DOCUMENTS}

    assert not [suffix for suffix in code if format_of(Path(f"x{suffix}")).isolated]
    assert ".py" in code


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_text_headings_and_metadata_are_read(suffix: str) -> None:
    """The text is in one chunk, below its heading, and the title is metadata."""
    path = Path(f"x{suffix}")
    reader = format_of(path)
    with IsolatedParser() as isolated:
        content = (isolated if reader.isolated else reader).read(DOCUMENTS[suffix], path)
    [chunk] = [one for one in reader.chunks(content.sections) if "Heat it slowly." in one.text]

    assert suffix in {".txt", ".pdf"} or chunk.header_path.endswith("Kiln")
    assert suffix in {".txt", ".pdf", ".docx"} or content.metadata["title"] == "Guide"
    assert chunk.page == (suffix == ".pdf")


@pytest.mark.parametrize("suffix", DOCUMENTS)
@settings(max_examples=40)
@given(start=st.integers(0, 300), inserted=st.binary(max_size=30) | st.sampled_from([b"<![x[", b"<!", b"&#", b"\x00"]))
def test_damaged_bytes_have_chunks_or_a_reason(suffix: str, start: int, inserted: bytes) -> None:
    """Any bytes are either read, or refused with a reason and a hint."""
    path, data = Path(f"x{suffix}"), DOCUMENTS[suffix]
    reader = format_of(path)
    try:
        content = reader.read(data[:start] + inserted + data[start:], path)
    except DocumentUnreadable as problem:
        outcome = [problem.reason, problem.hint]
    else:
        outcome = [chunk.text for chunk in reader.chunks(content.sections)]
    assert all(outcome)
