"""Reads the messages of an OpenCode session, however they were kept, into turns and notes."""

import hashlib
from collections.abc import Sequence

from ....core.conversation import Fact, Kind, Note, SessionKind, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..given import EMPTY, REPEATED, Given, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Mark
from ..unrolled import TITLE_RANK, RowReader

_PLACEHOLDERS = ("New session - ", "Child session - ")
_DONE = {"completed", "success", "error"}


class OpenCodeReader(RowReader):
    """Reads one session."""

    def _record(self, record: Record, line: Line) -> Given:
        header = mapping(record.get("session") or record.get("info"))
        if "session" in record or ("role" not in header and "directory" in header):
            return self._header(header, line.number)
        if "message" not in record and "info" not in record:
            return unknown(string(record.get("type")) or "record")
        info = mapping(record.get("message") or record.get("info"))
        parts = [mapping(each) for each in listing(record.get("parts"))]
        parts = [mapping(part["data"]) if "data" in part else part for part in parts]
        number = string(record.get("id")) or string(info.get("id"))
        at = instant(mapping(info.get("time")).get("created")) or instant(record.get("created"))
        mark = Mark(line.number, at, f"{number}@{_digest(info, parts)}" if number else "")
        match info.get("role"):
            case "user":
                return self._typed(parts, mark) or EMPTY
            case "assistant":
                return [*self._said(info, parts, mark), *self._about(info, mark.line, number)] or EMPTY
            case role:
                return unknown(f"role {role}" if role else "message")

    def _header(self, header: Record, line: int) -> Given:
        title, learn = string(header.get("title")), self._facts.learn
        return [
            *learn(line, Fact.SESSION, string(header.get("id"))),
            *learn(line, Fact.PARENT, string(header.get("parentID") or header.get("parent_id"))),
            *learn(line, Fact.CWD, string(header.get("directory"))),
            *learn(line, Fact.VERSION, string(header.get("version"))),
            *learn(line, Fact.TITLE, "" if title.startswith(_PLACEHOLDERS) else title, rank=TITLE_RANK),
        ] or REPEATED

    def _typed(self, parts: Sequence[Record], mark: Mark) -> Sequence[Turn | Note]:
        """What the person asked, and what the program added to it; a sub-agent is asked by its parent."""
        self._calls.clear()
        speaker = Speaker.HOST if self._session.kind is SessionKind.SUBAGENT else Speaker.HUMAN
        typed = [_text(part) for part in parts if not _is_added(part)]
        added = [_text(part) for part in parts if _is_added(part)]
        asked = "\n\n".join(filter(None, typed))
        compacted = any(part.get("type") == "compaction" for part in parts)
        return [
            *([mark.turn(speaker, Kind.PROMPT, asked)] if asked else []),
            *(self._facts.place(mark.line) if asked else []),
            *(mark.injected(text, shorten=self._shorten) for text in added if text),
            *([mark.turn(Speaker.HOST, Kind.COMPACTION, "Conversation compacted")] if compacted else []),
        ]

    def _said(self, info: Record, parts: Sequence[Record], mark: Mark) -> Sequence[Turn | Note]:
        turns = [turn for part in parts for turn in self._part(part, mark, summary=info.get("summary") is True)]
        error = mapping(info.get("error"))
        fault = clean(string(mapping(error.get("data")).get("message")) or string(error.get("name")))
        return [*turns, *([mark.injected(fault, shorten=self._shorten, failed=True)] if fault else [])]

    def _part(self, part: Record, mark: Mark, *, summary: bool) -> Sequence[Turn]:
        kind, text = part.get("type"), clean(_text(part))
        if kind == "tool":
            return self._tool(part, mark)
        if not text:
            return ()
        if _is_added(part) or kind == "retry":
            return [mark.injected(text, shorten=self._shorten, failed=kind == "retry")]
        if summary:
            return [mark.turn(Speaker.HOST, Kind.COMPACTION, text)]
        said_as = Kind.THINKING if kind == "reasoning" else Kind.PROSE
        return [mark.turn(Speaker.ASSISTANT, said_as, text, group=mark.record)]

    def _tool(self, part: Record, mark: Mark) -> Sequence[Turn]:
        """The call and, once there is one, its result."""
        state, call = mapping(part.get("state")), string(part.get("callID"))
        turns = [self._calls.call(mark, call, string(part.get("tool")), state.get("input"), group=mark.record)]
        if string(state.get("status")) in _DONE:
            failed = state["status"] == "error"
            text = string(state.get("error" if failed else "output"))
            turns.append(self._calls.result(mark, call, text, failed=failed))
        return turns

    def _about(self, info: Record, line: int, number: str) -> Sequence[Note]:
        tokens, learn = mapping(info.get("tokens")), self._facts.learn
        cache = mapping(tokens.get("cache"))
        given = whole(tokens.get("input")) + whole(cache.get("read")) + whole(cache.get("write"))
        made = whole(tokens.get("output")) + whole(tokens.get("reasoning"))
        return [
            *learn(line, Fact.MODEL, string(info.get("modelID"))),
            *learn(line, Fact.CWD, string(mapping(info.get("path")).get("cwd"))),
            *learn(line, Fact.USAGE, f"{number or line} {given} {made}" if given or made else ""),
        ]


def _is_added(part: Record) -> bool:
    return part.get("synthetic") is True or part.get("ignored") is True


def _text(part: Record) -> str:
    """What a part says; files by their names, tasks of sub-agents as they were given."""
    match part.get("type"):
        case "file":
            return f"[file {clean(string(part.get('filename')) or string(part.get('mime')))}]"
        case "subtask":
            return clean(string(part.get("prompt")) or string(part.get("description")))
        case "retry":
            return clean(string(mapping(mapping(part.get("error")).get("data")).get("message")))
        case _:
            return clean(string(part.get("text")))


def _digest(info: Record, parts: Sequence[Record]) -> str:
    """What is equal for one state of a message, however it was kept."""
    said = [string(mapping(info.get("error")).get("name"))]
    for part in parts:
        state = mapping(part.get("state"))
        said += [string(part.get("type")), _text(part), string(part.get("tool")), string(state.get("status"))]
        said += [string(state.get("output")), string(state.get("error"))]
    return hashlib.blake2b("\0".join(said).encode(), digest_size=8).hexdigest()
