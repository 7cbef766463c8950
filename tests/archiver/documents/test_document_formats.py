"""Tests of `document_formats.py`."""

import random
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.document_formats import format_of
from palaver.archiver.documents.document_reader import DocumentContent
from palaver.archiver.documents.isolated_parser import IsolatedParser
from palaver.core.errors import DocumentUnreadable

from ...shared import SHARED

# Properties of the formats that are plain text.


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


# Text of PDF files, parsed in a separate process.


SAMPLES = SHARED / "hostile" / "pdf-samples.tar.gz"
HERE = Path("/here.pdf")


def read(data: bytes) -> DocumentContent:
    """Return the content of a PDF."""
    with IsolatedParser() as parser:
        return parser.read(data, HERE)


def pdf(contents: Sequence[bytes], extra: bytes = b"") -> bytes:
    """Return a PDF with one page for each content stream."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[bytes] = []
    for content in contents:
        number = len(objects) + 1
        kids.append(b"%d 0 R" % number)
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
        objects += [page % (number + 1), b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), extra, content)]
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    data, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%s\nendobj\n" % (number, body)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(places) + 1, rows)
    return data + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, len(data))


def pdf_with_texts(*pages: str) -> bytes:
    """Return a PDF with one line of text on each page."""
    return pdf([b"BT /F 12 Tf 72 720 Td (%s) Tj ET" % page.encode() for page in pages])


def test_each_page_is_a_chunk() -> None:
    """Each page is a chunk numbered from 1, except that empty pages have no chunk."""
    found = format_of(HERE).chunks(read(pdf_with_texts("First things", "", "Third things")).sections)

    assert [(one.page, one.text) for one in found] == [(1, "First things"), (3, "Third things")]


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"no pdf at all", pdf_with_texts("x")[:200]], ids=len)
def test_a_damaged_file_is_an_error(data: bytes) -> None:
    """A damaged file raises an error with a hint."""
    with pytest.raises(DocumentUnreadable, match="the file is damaged or not a PDF") as error:
        read(data)

    assert error.value.hint


def test_a_pdf_without_text_is_an_error() -> None:
    """A PDF without text, such as a scan, raises an error."""
    with pytest.raises(DocumentUnreadable, match="no text") as error:
        read(pdf_with_texts(""))

    assert "scanned" in error.value.hint


def test_a_decompression_bomb_is_refused() -> None:
    """A page of a few kilobytes that decompresses to gigabytes is refused."""
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(b" " * (1 << 24)) for _ in range(24)) + packer.flush()

    with pytest.raises(DocumentUnreadable):
        read(pdf([bomb], b"/Filter/FlateDecode"))


@pytest.mark.skipif(not SAMPLES.exists(), reason="no samples")
@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("minimal-document.pdf", "Lorem ipsum"),
        ("pdflatex-4-pages.pdf", "some text without a meaning"),
        ("aes-256.pdf", "encrypted"),
        ("libreoffice-writer-password.pdf", "encrypted"),
        ("zen_of_python_corrupted.pdf", "Beautiful"),
        ("issue-1113-evil-xobjects.pdf", "damaged"),
        ("imagemagick-lzw.pdf", "no text"),
    ],
)
def test_real_files_have_text_or_one_reason(name: str, outcome: str) -> None:
    """Each file of a PDF library's test suite yields text or one failure reason."""
    [data] = [data for path, data in samples() if path.endswith(f"/{name}")]

    assert outcome in text_or_reason(data)


@pytest.mark.skipif(not SAMPLES.exists(), reason="no samples")
@pytest.mark.timeout(300)
def test_every_hostile_file_and_mutant_ends_within_the_limits() -> None:
    """Each file of two PDF libraries' test suites, and a damaged copy of each, yields text or one failure reason."""
    damage = random.Random(7)
    with IsolatedParser() as parser:
        for name, data in samples():
            broken = bytearray(data)
            for _ in range(20):
                broken[damage.randrange(len(broken))] = damage.randrange(256)
            for variant in (data, bytes(broken)):
                assert text_or_reason(variant, parser), name


def samples() -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the hostile PDFs."""
    with tarfile.open(SAMPLES) as tar:
        for member in tar:
            if member.name.endswith(".pdf") and (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


def text_or_reason(data: bytes, parser: IsolatedParser | None = None) -> str:
    """Return the text of a PDF, or the reason why it has none."""
    try:
        content = parser.read(data, HERE) if parser else read(data)
    except DocumentUnreadable as problem:
        return problem.reason if problem.hint else ""
    return "\n".join(section.text for section in content.sections)
