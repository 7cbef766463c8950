"""Support for the activity of Gemini Apps in an export of Google Takeout.

The export is a list of activities, one per prompt, in `My Activity/Gemini Apps/MyActivity.json`. Exports since
September 2026 name the conversation of each prompt. In earlier exports, the prompts of one day form a session.
`docs/formats/gemini-apps.md` names the sources.

- Supported: prompts with the names of attachments, replies, also those that were generated again, and times.
- Not supported: the HTML variant of the export, files of Canvas, pictures, feedback, and languages whose word for
  "Prompted" is not listed in `_PROMPTED`: their prompts begin with this word.
- Tested with: descriptions of real exports of 2025 and 2026, measured by other projects.
- Test data: `examples/gemini-apps.jsonl`.
"""

import re
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

from ...core.conversation import Kind
from ..lines import Line, Record, clean
from .container_formats import message_of
from .containers import ExportFormat, conversations, file_name, fingerprint, head, message_line
from .json_values import instant, listing, mappings, string
from .record_reader import RecordReader
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    record_id,
)

_MEMBER = re.compile(r"(?:^|/)[^/]*Gemini[^/]*/[^/]+\.json$")
"""Name of the file in a zip, in a folder whose translated names all contain the product's name."""
_PRODUCTS = ("Gemini", "Bard")
_PROMPTED = re.compile(r"(?:Prompted|Branched|Answered|Asked:?|Said)\s+", re.IGNORECASE)
_OTHER = re.compile(r"(?:Created|Added|Used|Gave|Selected|Cleared|Viewed|Visited)\b")
"""Beginnings of activities that are no prompts."""
_CONVERSATION = re.compile(r"https://gemini\.google\.com/app/([0-9a-f]{8,})")
_BLOCKS = {
    *("blockquote", "br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "table", "tr", "ul")
}


class GeminiAppsReader(RecordReader):
    """Reader of one session, with one activity per record. An activity has a prompt and its answers."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return SkipReason.BOOKKEEPING
        activity, own_id = message_of(record), record_id("", line.data)
        stamp = RecordStamp(line.number, instant(activity.get("time")), own_id)
        title = clean(string(activity.get("title")))
        prompted = _PROMPTED.match(title)
        answers = [answer for item in mappings(activity.get("safeHtmlItem")) if (answer := _text(item.get("html")))]
        if not prompted and (_OTHER.match(title) or not answers):
            return SkipReason.BOOKKEEPING
        names = [*map(string, listing(activity.get("attachedFiles"))), string(activity.get("imageFile"))]
        typed = title[prompted.end() if prompted else 0 :]
        asked = "\n".join(filter(None, [typed, *(f"[file {clean(name)}]" for name in names if name)]))
        replies = [turn for answer in answers for turn in stamp.reply(Kind.PROSE, answer, own_id)]
        return [*(self._prompt(asked, stamp) if asked else []), *replies] or SkipReason.EMPTY


class _Text(HTMLParser):
    """Parser that collects the visible text of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in {"script", "style"}
        self._preformatted += tag == "pre"
        if tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"}
        self._preformatted -= tag == "pre"
        if tag in _BLOCKS - {"br", "hr"}:
            self.parts.append("\n")
        elif tag in {"td", "th"}:
            self.parts.append(" | ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))


def _text(html: object) -> str:
    parser = _Text()
    parser.feed(string(html))
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *(?!- )", "\n", "".join(parser.parts))).strip()


class GeminiApps(ExportFormat):
    """Activities of Gemini Apps in an export of Google Takeout."""

    agent = "gemini-apps"
    reader_class = GeminiAppsReader
    service = "gemini.google.com"
    messages_field, messages_type = "title", str
    id_fields = ("id",)
    name_fields = ("id", "id")
    time_fields = ("updated", "created")

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a list of activities of Gemini Apps, or a zip with one. Raises `OSError`."""
        if path.suffix.lower() not in {".json", ".zip"}:
            return False
        start = head(path, _MEMBER)
        return b'"activityControls"' in start and any(f'"{name}'.encode() in start for name in _PRODUCTS)

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the activities of each conversation or, if no conversation is named, of each day."""
        sessions: dict[str, list[Record]] = {}
        for activity in conversations(path, _MEMBER):
            if string(activity.get("header")).startswith(_PRODUCTS):
                sessions.setdefault(_session_id(activity), []).append(activity)
        for session_id, activities in sorted(sessions.items()):
            activities.sort(key=lambda activity: instant(activity.get("time")) or 0)
            at = instant(activities[-1].get("time")) or 0
            lines = [message_line(session_id, conversation={"id": session_id})]
            for activity in activities:
                lines += self._messages(session_id, activity)
            own_path, archived = Path(self.service, file_name(session_id)), f"conversations/{file_name(session_id)}"
            yield ContainedSession(own_path, archived, fingerprint(*lines), at, partial(iter, lines))

    def _messages(self, session_id: str, found: Record) -> Iterator[bytes]:
        key = record_id("", f"{found.get('time')} {found.get('title')}".encode("utf-8", "replace"))
        yield message_line(f"{session_id}/{key}", message=found)


def _session_id(activity: Record) -> str:
    urls = (string(link.get("url")) for link in mappings(activity.get("details")))
    links = {match[1] for match in map(_CONVERSATION.match, urls) if match}
    return links.pop() if len(links) == 1 else f"day-{string(activity.get('time'))[:10] or 'unknown'}"


FORMAT: ContainerFormat = GeminiApps()
