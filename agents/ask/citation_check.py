"""Check that the IDs and transcript lines cited in a text exist in the archive."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.formats.registry import AGENTS
from ...core.cited_answer import CitedSource
from ...core.errors import PalaverError
from ...core.ids import canonical
from ...core.query import IDS_MAX

if TYPE_CHECKING:
    from ...core.results import Detail
    from ...search.archive_search import ArchiveSearch

UNVERIFIED: Final = "[not in the archive]"
"""Mark after a citation of an item or of lines that the archive does not contain."""
PUBLIC_ID: Final = r"(?<![\w/-])(?i:(?:obs|ex|chunk)-\d+|(?:mem|chunk)_\d+)(?!\w)"
"""Pattern of an ID in a text, such as `obs-7` or `mem_12`, in upper or lower case."""
_CITATION: Final = re.compile(
    rf"(?P<id>{PUBLIC_ID})"
    r"|(?<![\w/.-])(?P<path>[\w.@+~-]+(?:/[^\s`:\[\](),;]+)+|[\w-]{4,}):(?P<first>\d+)(?:-(?P<last>\d+))?(?![\w.:])"
)
_PAIR: Final = re.compile(r"`?,\s*`?")
"""Pattern for the text between an ID and its lines, as in `[obs-7, 0b6f:12]`."""
_SCHEME: Final = re.compile(r"\w+://\S*")


class CheckedText(Struct, frozen=True):
    """Text with a mark after each citation that is not in the archive, and the distinct citations in order."""

    text: str
    sources: tuple[CitedSource, ...]

    @property
    def missing(self) -> tuple[CitedSource, ...]:
        """Citations that are not in the archive."""
        return tuple(source for source in self.sources if not source.exists)


class CitationChecker:
    """Checker of cited IDs (`obs-7`) and lines (`claude-code/x.jsonl:12-14`, or `0b6f:12` with a session ID)."""

    def __init__(self, archive: "ArchiveSearch") -> None:
        self._archive = archive

    def check(self, text: str) -> CheckedText:
        """Return the text with a mark after each citation that is not in the archive.

        In a pair such as `[obs-7, 0b6f:12]`, the lines must be from the same conversation as `obs-7`.
        """
        found = list(self._citations(text))
        details = self._details([each["id"] for each in found if each["id"]])
        marked, end = list[str](), 0
        sources: dict[str, CitedSource] = {}
        entry: CitedSource | None = None
        for each in found:
            source = _of_id(each["id"], details) if each["id"] else self._of_lines(each)
            if source is None:
                continue
            if not each["id"] and entry is not None and _PAIR.fullmatch(text, end, each.start()):
                source = replace(source, exists=source.exists and source.session_id == entry.session_id)
            entry = source if each["id"] and source.path else None
            sources.setdefault(each[0], source)
            marked += [text[end : each.end()], "" if source.exists else f" {UNVERIFIED}"]
            end = each.end()
        return CheckedText("".join([*marked, text[end:]]), tuple(sources.values()))

    def _citations(self, text: str) -> Iterator[re.Match[str]]:
        addresses = [found.span() for found in _SCHEME.finditer(text)]
        for found in _CITATION.finditer(text):
            if not any(start <= found.start() < end for start, end in addresses):
                yield found

    def _details(self, wanted: Sequence[str]) -> dict[str, "Detail"]:
        distinct = list(dict.fromkeys(map(canonical, wanted)))
        found: dict[str, Detail] = {}
        for start in range(0, len(distinct), IDS_MAX):
            details, _ = self._archive.look_up(distinct[start : start + IDS_MAX])
            found |= {detail.id: detail for detail in details}
        return found

    def _of_lines(self, cited: re.Match[str]) -> CitedSource | None:
        """Return the cited lines, or None if the text is not a citation, such as `localhost:8080` or `store.py:12`."""
        path, first = cited["path"], int(cited["first"])
        last = int(cited["last"] or first)
        source = CitedSource(path=path, start_line=first, end_line=last, exists=False)
        is_transcript = path.partition("/")[0] in AGENTS or path.endswith(".jsonl")
        try:
            if not is_transcript:
                path, _ = self._archive.locate(path)
            if not 1 <= first <= last:
                return source
            excerpt = self._archive.read(path, last, last)
        except PalaverError:
            return source if is_transcript else None
        return CitedSource("", excerpt.session_id, cited["path"], excerpt.path, first, last)


def _of_id(public: str, details: dict[str, "Detail"]) -> CitedSource:
    detail = details.get(canonical(public))
    if detail is None:
        return CitedSource(id=public, exists=False)
    return CitedSource(detail.id, detail.session_id, "", detail.path, detail.start_line, detail.end_line)
