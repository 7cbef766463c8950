"""Notebooks are split at headings and cells, without outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.documents.document_formats import format_of
from palaver.archiver.documents.markup import notebook_content
from palaver.core.document import ChunkKind
from palaver.core.errors import DocumentUnreadable

HERE = Path("x.ipynb")


def notebook(*cells: dict[str, Any], **fields: Any) -> bytes:
    """Return a notebook."""
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells, **fields}).encode()


MARKDOWN = {"cell_type": "markdown", "source": ["# Firing\n", "Measure.\n", "## Curve"]}
CODE = {"cell_type": "code", "source": "plot()", "outputs": [{"data": {"image/png": "A" * 1_000_000}}]}


def test_cells_are_sections_below_the_last_heading() -> None:
    """Code is a section of its own, of the kind of code. Outputs are skipped."""
    found = format_of(HERE).chunks(notebook_content(notebook(MARKDOWN, CODE), HERE).sections)

    assert [(one.header_path, one.text, one.kind, one.unit) for one in found] == [
        ("Firing", "Firing\n\nMeasure.", ChunkKind.DOCUMENT, ""),
        ("Firing > Curve", "plot()", ChunkKind.CODE, "cell"),
    ]


def test_version_3_is_read() -> None:
    """Notebooks of version 3 have worksheets, cells with headings, and code in `input`."""
    cells = [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": ["f()"]}]

    assert notebook_content(notebook(nbformat=3, worksheets=[{"cells": cells}]), HERE).sections[0].headings == ("Old",)


def test_metadata_of_the_notebook_are_kept() -> None:
    """Title, authors and language are metadata, whatever else a notebook contains."""
    metadata = {"title": "Lab", "authors": [{"name": "Ann"}, 7], "language_info": {"name": "python"}, "x": {"y": [1]}}
    found = notebook_content(notebook(metadata=metadata), HERE).metadata

    assert found == {"title": "Lab", "author": "Ann", "programming language": "python"}


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"nbformat": 4, "cells": 7}', b"\xff\xfe", b'{"nbformat": 4, "metadata": ' + b"[" * 100_000],
    ids=len,
)
def test_a_damaged_notebook_is_an_error(data: bytes) -> None:
    """A file that is not a notebook, or that is nested too deeply, is refused with a hint."""
    with pytest.raises(DocumentUnreadable, match="not a Jupyter notebook") as error:
        notebook_content(data, HERE)

    assert error.value.hint
