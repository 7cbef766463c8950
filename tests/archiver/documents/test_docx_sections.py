"""DOCX files are split at headings. Hostile files end in an error within the limits."""

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from palaver.archiver.documents.document_formats import docx_content
from palaver.archiver.documents.isolated_parser import IsolatedParser
from palaver.core.errors import DocumentUnreadable

HERE = Path("x.docx")
NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = """<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
    <w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>
    <w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
    <w:style w:styleId="T"><w:name w:val="Title"/></w:style>
    <w:style w:styleId="O"><w:name w:val="Own"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>"""
CORE = """<cp:coreProperties xmlns:cp="cp" xmlns:dc="dc" xmlns:dcterms="dcterms"><dc:title>Kiln</dc:title>
    <dc:creator>Ann</dc:creator><dcterms:created>2026-03-01T00:00:00Z</dcterms:created></cp:coreProperties>"""


def docx(body: str, prologue: str = "", **parts: str) -> bytes:
    """Return a DOCX file with a body and other parts of the folder `word`."""
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, inside in {"document": f"<w:body>{body}</w:body>", "styles": STYLES, **parts}.items():
            archive.writestr(f"word/{name}.xml", f'{prologue}<w:x xmlns:w="{NAMESPACE}">{inside}</w:x>')
        archive.writestr("docProps/core.xml", CORE)
    return packed.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph. Its tab stops are not part of the text."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr>'
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def outline(data: bytes) -> list[tuple[str, str]]:
    """Return the header path and the text of each section."""
    return [(" > ".join(section.headings), section.text) for section in docx_content(data, HERE).sections]


def test_sections_follow_the_styles_of_headings() -> None:
    """Headings are recognised by the name, the base or the outline level of their style, in any language."""
    styled = (
        ("Kiln", "T"),
        ("Heat", "berschrift1"),
        ("Slowly.", "Loop"),
        ("Gas", "O"),
        ("Open.", ""),
        ("Cool", "Mine"),
    )

    assert outline(docx("".join(paragraph(*each) for each in styled))) == [
        ("Kiln > Heat", "Heat\n\nSlowly."),
        ("Kiln > Heat > Gas", "Gas\n\nOpen."),
        ("Kiln > Cool", "Cool"),
    ]


def test_tables_text_boxes_and_notes_are_read_once() -> None:
    """A row of a table is a line. Text boxes and footnotes are read. Alternatives and deleted text are not."""
    box = f"<w:txbx>{paragraph('Box')}</w:txbx>"
    body = (
        f"<w:tbl><w:tr><w:tc>{paragraph('a')}{paragraph('b')}</w:tc><w:tc>{paragraph('c')}</w:tc></w:tr></w:tbl>"
        f"<w:p><w:r><w:Choice>{box}</w:Choice><w:Fallback>{box}</w:Fallback><w:t>x</w:t><w:tab/><w:t>y</w:t>"
        "<w:delText>deleted</w:delText></w:r></w:p>"
    )

    assert outline(docx(body, footnotes=paragraph("Note"))) == [("", "a b | c\n\nBox\n\nx\ty\n\nNote")]


def test_core_properties_are_metadata() -> None:
    """Title, author and date are metadata."""
    assert docx_content(docx(""), HERE).metadata == {"title": "Kiln", "author": "Ann", "date": "2026-03-01T00:00:00Z"}


@pytest.mark.parametrize("data", [b"", b"PK", b"no zip at all", docx(paragraph("x"))[:300]], ids=len)
def test_a_damaged_file_is_an_error(data: bytes) -> None:
    """A damaged file raises an error with a hint."""
    with pytest.raises(DocumentUnreadable, match="damaged or not a DOCX") as error:
        docx_content(data, HERE)

    assert error.value.hint


def test_an_encrypted_file_is_an_error() -> None:
    """An encrypted file is an OLE file, as are files of old versions of Word."""
    with pytest.raises(DocumentUnreadable, match="encrypted"):
        docx_content(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), HERE)


def test_hostile_files_end_within_the_limits() -> None:
    """Decompression bombs, entity expansion and deep nesting end in an error, and the parser reads the next file."""
    bomb = docx("x" * (80 << 20))
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20 if n else "lol"}">' for n in range(12))
    laughs = docx("&e11;", prologue=f"<!DOCTYPE x [{entities}]>")
    external = docx("&file;", prologue='<!DOCTYPE x [<!ENTITY file SYSTEM "file:///etc/passwd">]>')
    nested = docx("<w:p>" * 30_000 + "</w:p>" * 30_000)
    with IsolatedParser() as parser:
        for hostile, reason in ((bomb, "larger than 64 MiB"), (laughs, "damaged"), (external, "damaged")):
            with pytest.raises(DocumentUnreadable, match=reason) as error:
                parser.read(hostile, HERE)
            assert error.value.hint
        with suppress(DocumentUnreadable):
            assert not parser.read(nested, HERE).sections
        assert parser.read(docx(paragraph("Text")), HERE).sections
