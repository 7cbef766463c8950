"""Formats of documents: the reader for each suffix.

Libraries parse PDF, YAML and Markdown. A scan of the lines finds the titles of reStructuredText. In a test with 700
files, it found the same titles as docutils in one seventieth of the CPU time. It never runs directives. The standard
library's parsers read HTML and DOCX without building a tree of the whole document.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ...core.document import Chunk
from ...core.errors import UnsupportedDocument
from . import code_chunks, markup, pages
from .code_chunks import CODE_LANGUAGES, CodeLanguage
from .document_reader import DocumentReader, Section, SectionReader, TextReader, chunks_of
from .markup import Heading, decode, decode_python, split_at

VERSION: Final = 7
"""Version of the chunks. Increase it when a code change alters chunks, so that files are indexed again."""


def format_of(path: Path) -> DocumentReader:
    """Return the reader of a file, by its suffix. Raises `UnsupportedDocument`."""
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedDocument(path, SUFFIXES)
    return reader


def _by_headings(headings: Callable[[str], Iterator[Heading]]) -> Callable[[str], list[Chunk]]:
    return lambda text: chunks_of(split_at(headings(text), text))


def _by_size(text: str) -> list[Chunk]:
    return chunks_of([Section(text, line=1)])


def _of_code(language: CodeLanguage) -> DocumentReader:
    decoder = decode_python if language.name == "python" else decode
    return TextReader(language.name, decoder, lambda text: code_chunks.chunks(text, language))


_MARKDOWN: Final = TextReader("markdown", decode, _by_headings(markup.markdown_headings), markup.markdown_metadata)
_HTML: Final = SectionReader("html", markup.html_content)
_FORMATS: Final[dict[str, DocumentReader]] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".rst": TextReader("rst", decode, _by_headings(markup.rst_headings), markup.rst_metadata),
    ".org": TextReader("org", decode, _by_headings(markup.org_headings), markup.org_metadata),
    ".txt": TextReader("text", decode, _by_size),
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".ipynb": SectionReader("notebook", markup.notebook_content),
    ".docx": SectionReader("docx", pages.docx_content),
    ".pdf": SectionReader("pdf", pages.pdf_content),
    **{suffix: _of_code(language) for suffix, language in CODE_LANGUAGES.items()},
}
SUFFIXES: Final = tuple(_FORMATS)
