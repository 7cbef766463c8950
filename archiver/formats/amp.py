"""Support for Amp.

Until spring 2026, Amp stored one JSON document per thread in `~/.local/share/amp/threads`. Since then, threads are only
on the server.

- Supported: prompts with the names of files, replies, reasoning, tool calls with results, titles, branches, models,
  token usage.
- Not supported: threads on the server, snapshots of files, traces.
- Tested with: descriptions of real threads of January to March 2026, and fixtures of three other readers.
- Test data: `examples/amp.jsonl`.
"""

import re
from pathlib import Path

import orjson

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ..lines import Line, Record, clean, head_records
from .json_values import (
    content_blocks,
    first_string,
    instant,
    mapping,
    mappings,
    media_label,
    path_of_uri,
    string,
    total,
)
from .record_reader import FolderFormat, RecordReader, data_home
from .transcript_format import RecordEvents, RecordStamp, SkipReason, TranscriptFormat, unknown_type, usage

_ID = r"T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INPUTS = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
_DONE = {"", "done", "in-progress"}


class AmpReader(RecordReader):
    """Reader of one thread. Each record after the header is a message."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        role = string(record.get("role"))
        if not role:
            return self._header(record, line.number)
        counts, about = mapping(record.get("usage")), mapping(record.get("meta"))
        at = instant(about.get("sentAt")) or instant(counts.get("timestamp"))
        stamp = RecordStamp(line.number, at)
        blocks = content_blocks(record.get("content"))
        if role == "user":
            results = [turn for block in blocks for turn in self._result(block, stamp)]
            text = clean("\n".join(filter(None, map(_text, blocks))))
            return [*results, *(self._prompt(text, stamp) if text else [])] or SkipReason.EMPTY
        if role == "assistant":
            return self._reply(blocks, counts, stamp) or SkipReason.EMPTY
        return unknown_type(f"role {role}")

    def _header(self, record: Record, line: int) -> RecordEvents:
        if "id" not in record:
            return unknown_type("")
        initial = mapping(mapping(record.get("env")).get("initial"))
        tree = next(iter(mappings(initial.get("trees"))), Record())
        platform = mapping(initial.get("platform"))
        facts = {
            Fact.SESSION: record.get("id"),
            Fact.TITLE: record.get("title"),
            Fact.CWD: path_of_uri(string(tree.get("uri"))),
            Fact.BRANCH: string(mapping(tree.get("repository")).get("ref")).removeprefix("refs/heads/"),
            Fact.VERSION: platform.get("clientVersion"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _reply(self, blocks: list[Record], counts: Record, stamp: RecordStamp) -> list[Turn | Note]:
        group, events = f"line-{stamp.line}", list[Turn | Note]()
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                call, tool = string(block.get("id")), string(block.get("name"))
                events.append(self._calls.call(stamp, call, tool, _arguments(block.get("input")), group=group))
            elif kind == "thinking":
                events += stamp.reply(Kind.THINKING, string(block.get("thinking")), group)
            else:
                events += stamp.reply(Kind.PROSE, _text(block), group)
        used = usage(group, total(counts, *_INPUTS), total(counts, "outputTokens"))
        return [*events, *self._facts.notes(stamp.line, {Fact.MODEL: counts.get("model"), Fact.USAGE: used})]

    def _result(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        if block.get("type") != "tool_result":
            return []
        run = mapping(block.get("run"))
        result = run.get("result", run.get("error", block.get("content")))
        exited = mapping(result).get("exitCode") not in (None, 0)
        failed = exited or "error" in run or string(run.get("status")) not in _DONE
        text = _result_text(result) or first_string(run, "reason", "status")
        return [self._calls.result(stamp, string(block.get("toolUseID")), text, failed=failed)]


def _arguments(arguments: object) -> object:
    """Return the arguments of a call. The shell's working folder is left out, because it hides the command."""
    given = mapping(arguments)
    return {"command": given["cmd"]} if isinstance(given.get("cmd"), str) else arguments


def _result_text(result: object) -> str:
    """Return the result of a tool: its text, the text in its usual fields, or its JSON."""
    if isinstance(result, str) or result is None:
        return string(result)
    text = first_string(mapping(result), "output", "content", "diff", "message")
    try:
        return text or orjson.dumps(result).decode()
    except TypeError:  # orjson rejects deep nesting and large integers.
        return ""


def _text(block: Record) -> str:
    if block.get("type") == "image":
        source = mapping(block.get("source"))
        return media_label(string(source.get("mediaType")) or "image", source.get("data"))
    return string(block.get("text"))


class Amp(FolderFormat):
    """Threads in `~/.local/share/amp/threads/<thread>.json`."""

    agent = "amp"
    reader_class = AmpReader
    suffixes = (".json",)
    name_pattern = re.compile(rf"{_ID}\.json")

    def roots(self) -> list[Path]:
        """Return the folder of the threads, if it exists."""
        data = data_home()
        return [folder] if (folder := data / "amp" / "threads").is_dir() else []

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by its header or, without a header, by the file name."""
        header = next(filter(self._is_from_agent, head_records(head)), Record())
        started = instant(header.get("created"))
        return Session(self.agent, string(header.get("id")) or path.stem, started=started)

    def _is_from_agent(self, record: Record) -> bool:
        return string(record.get("id")).startswith("T-") and {"v", "created"} <= record.keys()


FORMAT: TranscriptFormat = Amp()
