"""Pages of PDF files, with their text."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...core.errors import DocumentUnreadable
from .document_reader import DocumentContent, Section

if TYPE_CHECKING:
    from pypdf import PdfReader

_PAGES: Final = 2_000
_CHARACTERS: Final = 5_000_000
_METADATA: Final = {"/Title": "title", "/Author": "author", "/Subject": "subject", "/Keywords": "keywords"}


def content(data: bytes, path: Path) -> DocumentContent:
    """Return the text of each page, and the metadata. Raises `DocumentUnreadable`."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(BytesIO(data))
        encrypted = reader.is_encrypted and not reader.decrypt("")
        count = 0 if encrypted else min(len(reader.pages), _PAGES)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a damaged file may cause any error
        raise _damaged(path) from None
    if encrypted:
        hint = "Save it without a password, then index the new file."
        raise DocumentUnreadable(path, "the file is encrypted", hint=hint)
    pages = _pages(reader, count, path)
    too_long = count == _PAGES or sum(len(page.text) for page in pages) >= _CHARACTERS
    return DocumentContent(pages, _metadata(reader), too_long)


def _pages(reader: "PdfReader", count: int, path: Path) -> tuple[Section, ...]:
    """Return the pages that contain text. Unreadable pages are omitted."""
    found: list[Section] = []
    left, failed = _CHARACTERS, False
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()[:left]
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a damaged page may cause any error
            text, failed = "", True
        if text.strip():
            found.append(Section(text, page=number + 1))
        left -= len(text)
        if not left:
            break
    if found:
        return tuple(found)
    if failed:
        raise _damaged(path)
    hint = "If the pages are scanned, run text recognition first."
    raise DocumentUnreadable(path, "the file contains no text", hint=hint)


def _metadata(reader: "PdfReader") -> dict[str, str]:
    try:
        known: dict[Any, Any] = dict(reader.metadata or {})
        return {name: str(known[key]) for key, name in _METADATA.items() if key in known}
    except Exception:  # noqa: BLE001 - damaged metadata may cause any error
        return {}


def _damaged(path: Path) -> DocumentUnreadable:
    return DocumentUnreadable(path, "the file is damaged or not a PDF", hint="Open it in a viewer and save it again.")
