"""Support for Hermes Agent.

Hermes stores sessions in `~/.hermes/state.db`, and those of a profile in `~/.hermes/profiles/<profile>/state.db`. Early
versions wrote files to `~/.hermes/sessions` as well. `docs/formats/hermes.md` names the sources.

- Supported: prompts, skills, replies, reasoning, tool calls with results, compactions, rewinds, titles, working
  folders, branches, token usage, sub-agents, continued sessions.
- Not supported: encrypted reasoning, the system prompt, costs, messages that other members of a chat wrote.
- Tested with: a published database of July 2026 and files of April and May 2026, the schema of version 30, and fixtures
  of other readers.
- Test data: `examples/hermes.jsonl`, and `agents/hermes` of agent-sessions.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import orjson

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Turn
from ...core.errors import SourceUnreadable
from ..lines import Line, Record, clean, head_records
from .container_formats import DatabaseFormat, Row, Table, message_of
from .containers import ForeignDatabase, Value, as_text, header_of, message_line
from .json_values import first_string, joined_text, local_instant, mapping, mappings, string, total
from .record_reader import RecordReader
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type, usage

_DATABASE = "state.db"
_PARTS = "\0json:"
"""Beginning of a message whose content is a list of parts."""
_SUMMARY = re.compile(r"\s*\[CONTEXT (?:COMPACTION|SUMMARY)")
_REVIEW = re.compile(r"\s*Review the conversation above and (?:update the skill library|consider saving to memory)")
_JOB = re.compile(r"\s*\[\w+: You are running as a scheduled cron job\..*?\]\n\n", re.DOTALL)
"""Text that the program adds to the beginning of the prompt of a scheduled job."""
_STARTED = re.compile(r"(?:\A|_)(\d{8})_(\d{6})(?:_|\Z)")
_SKILL = re.compile(r'\[\w+: The user has invoked the "([^"]+)" skill')
_ASKED = re.compile(r"instruction alongside the skill invocation: (.*?)(?:\n\n\[Runtime note:|\Z)", re.DOTALL)
_INPUT = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
_USAGE = (*_INPUT, "output_tokens", "model", "ended_at")


class HermesReader(RecordReader):
    """Reader of one session. Rows of the database and lines of a file have the same fields."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        started = _STARTED.search(session.native_id)
        self._started = local_instant("T".join(started.groups())) if started else None
        self._read_any = False
        self._rewound: str | None = None
        """Value of the note on the current range of rewound messages, or None outside such a range."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record or ("role" not in record and "session_id" in record):
            return self._header(mapping(record.get("conversation")) or record, line.number)
        if "usage" in record:
            used = mapping(record["usage"])
            value = usage(self._session.native_id, total(used, *_INPUT), total(used, "output_tokens"))
            return self._facts.note(line.number, Fact.USAGE, value) or SkipReason.EMPTY
        message = message_of(record) or record
        # The database numbers messages, so an equal message of another session has another ID.
        own_id = record_id("", line.data)
        at = local_instant(message.get("timestamp")) or self._started
        stamp = RecordStamp(line.number, at, own_id)
        notes = self._rewind(message, line.number)
        events = self._message(message, stamp) or SkipReason.EMPTY
        return [*notes, *events] if notes and not isinstance(events, str) else notes or events

    def _rewind(self, message: Record, line: int) -> list[Note]:
        """Return a note after a range of messages that the user abandoned.

        The program marks such messages, and those that a compaction replaced, as inactive.
        """
        begins, self._read_any = not self._read_any, True
        if message.get("active") == 0 and not message.get("compacted"):
            self._rewound = self._rewound or ("" if begins and self._partial else str(line))
            return []
        value, self._rewound = self._rewound, None
        return [] if value is None else [Note(line, Fact.REWOUND, value)]

    def _header(self, header: Record, line: int) -> RecordEvents:
        facts = {
            Fact.SESSION: first_string(header, "id", "session_id"),
            Fact.PARENT: header.get("parent_session_id"),
            Fact.CWD: header.get("cwd"),
            Fact.BRANCH: header.get("git_branch"),
            Fact.MODEL: header.get("model"),
            Fact.TITLE: header.get("title"),
        }
        if header.get("relation") == "continues":
            facts[Fact.CONTINUES] = facts.pop(Fact.PARENT)
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    def _message(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        match string(message.get("role")):
            case "user":
                return self._user(message, stamp)
            case "assistant":
                return self._assistant(message, stamp)
            case "tool":
                return self._result(message, stamp)
            case "session_meta":
                return self._facts.notes(stamp.line, {Fact.MODEL: message.get("model")}) or SkipReason.BOOKKEEPING
            case "system":
                return SkipReason.CONTEXT
            case "" if "function" in message:
                return SkipReason.CONTEXT  # The definition of a tool.
            case role:
                return unknown_type(f"role {role}")

    def _user(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(_text(message.get("content")))
        if message.get("_compressed_summary") or _SUMMARY.match(text):
            return self._compacted(text, stamp)
        hidden = message.get("display_kind") == "hidden" or message.get("observed")
        if hidden or _REVIEW.match(text):
            return self._injected(text, stamp)
        if job := _JOB.match(text):
            text = text[job.end() :]
        if skill := _SKILL.match(text):
            asked = _ASKED.search(text)
            text = f"/{skill[1]} {asked[1].strip() if asked else ''}".strip()
        return self._prompt(text, stamp) if text else []

    def _assistant(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text, calls = _text(message.get("content")), message.get("tool_calls")
        if message.get("_compressed_summary") or _SUMMARY.match(text):
            return self._compacted(text, stamp)
        group = stamp.record
        turns: list[Turn] = [
            *stamp.reply(Kind.THINKING, first_string(message, "reasoning", "reasoning_content"), group),
            *stamp.reply(Kind.PROSE, text, group),
        ]
        for call in mappings(_loaded(calls) if isinstance(calls, str) else calls):
            function = mapping(call.get("function")) or call
            arguments = function.get("arguments", function.get("input"))
            call_id, tool = first_string(call, "id", "call_id"), string(function.get("name"))
            turns.append(self._calls.call(stamp, call_id, tool, arguments, group=group))
        return turns

    def _result(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = _text(message.get("content"))
        value = mapping(_loaded(text)) if text.startswith("{") else {}
        fault = value.get("success") is False or bool(value.get("error")) or value.get("exit_code") not in (None, 0)
        failed = fault or message.get("effect_disposition") == "denied" or message.get("finish_reason") == "error"
        text = first_string(value, "output", "content", "error", "message") or text
        call, tool = string(message.get("tool_call_id")), string(message.get("tool_name"))
        return [self._calls.result(stamp, call, text, failed=failed, tool=tool)]


def _text(content: object) -> str:
    if isinstance(content, str) and content.startswith(_PARTS):
        content = _loaded(content.removeprefix(_PARTS))
    return joined_text(content, _part_text)


def _part_text(part: Record) -> str:
    return string(part.get("text")) or ("[image]" if "image" in string(part.get("type")) else "")


def _loaded(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


class Hermes(DatabaseFormat):
    """Sessions in `~/.hermes/state.db`, and in files of sessions that the database does not contain."""

    agent = "hermes"
    reader_class = HermesReader
    suffixes = (".jsonl", ".json")
    other_files = frozenset({"sessions.json"})
    name_pattern = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6,8}\.jsonl|session_\d{8}_\d{6}_[0-9a-f]{6,8}\.json")
    home_variable, home_folder, root_folders = "HERMES_HOME", ".hermes", ("sessions",)
    parent_fields, folder_fields = ("parent_session_id",), ("cwd",)
    database_name = _DATABASE
    session_table = Table(
        "sessions",
        frozenset({"id", "source", "started_at"}),
        known=frozenset({
            "chat_id", "chat_type", "created_source", "cwd", "display_name", "end_reason", "git_branch",
            "git_repo_root", "model", "parent_session_id", "profile_name", "thread_id", "title",
            "title_source", "user_id",
        }),
        order="started_at, rowid",
        changing=frozenset({
            "actual_cost_usd", "api_call_count", "archived", "billing_base_url", "billing_mode", "billing_provider",
            "cache_read_tokens", "cache_write_tokens", "compression_failure_cooldown_until",
            "compression_failure_error", "compression_fallback_streak", "compression_ineffective_count",
            "compression_overload_streak", "compression_recovery_deadline", "cost_source", "cost_status", "ended_at",
            "estimated_cost_usd", "expiry_finalized", "git_metadata_generation", "handoff_error",
            "handoff_platform", "handoff_state", "hidden", "input_tokens", "last_activity_at",
            "last_activity_description", "last_activity_provenance", "last_read_at", "message_count",
            "model_config", "origin_json",
            "output_tokens", "pinned", "pricing_version", "reasoning_tokens", "rewind_count", "session_key",
            "system_prompt", "system_prompt_hash", "tool_call_count", "tool_names", "transport_profile",
        }),
    )  # fmt: skip
    message_table = Table(
        "messages",
        frozenset({"id", "session_id", "role", "content", "timestamp"}),
        known=frozenset({
            "_compressed_summary", "active", "codex_message_items", "codex_reasoning_items", "compacted",
            "display_kind", "effect_disposition", "finish_reason", "observed", "reasoning", "reasoning_content",
            "reasoning_details", "token_count", "tool_call_id", "tool_calls", "tool_name",
        }),
        session="session_id",
        order="id",
        json=frozenset({"tool_calls"}),
        changing=frozenset({
            "api_content", "display_identity", "display_metadata", "display_order", "platform_message_id",
        }),
    )  # fmt: skip

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the databases: one for the user, and one for each profile."""
        home = Path(os.environ.get(self.home_variable) or Path.home() / self.home_folder).expanduser()
        return (home, _DATABASE), (home / "profiles", f"*/{_DATABASE}")

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, in a file without a header, by the file name.

        Only a session that the parent started for a task of its own is the session of a sub-agent.
        """
        header = header_of(head) or next(iter(head_records(head)), Record())
        name = path.name.partition(".")[0].removeprefix("session_")
        session_id = first_string(header, "id", "session_id") or name
        parent = string(header.get("parent_session_id"))
        kind = SessionKind.SUBAGENT if header.get("relation") == "subagent" else SessionKind.MAIN
        origin = parent if kind is SessionKind.SUBAGENT else ""
        # Profiles can use one ID, such as that of a channel, for different sessions.
        folder = path.parents[1] if len(path.parents) > 1 else path.parent
        is_profile = folder.parent.name == "profiles" or folder.name.startswith(f"{self.home_folder}-")
        scope = folder.name if is_profile else ""
        cwd = string(header.get("cwd"))
        return Session(self.agent, session_id, kind, origin, cwd=cwd, project=self.agent, scope=scope)

    def _in_order(self, rows: list[Row]) -> list[Row]:
        """Return the sessions, parents first, each with its relation to its parent."""
        sessions = {row["id"]: row for row in rows}
        for row in rows:
            if parent := sessions.get(row.get("parent_session_id")):
                row["relation"] = _relation(row, parent)
        return super()._in_order(rows)

    def _changes(self, session: Row) -> Iterable[object]:
        return (session.get(name) for name in ("last_activity_at", "ended_at", "started_at"))

    def _lines(
        self, database: ForeignDatabase, session_id: str, header: Row, others: Sequence[Table]
    ) -> Iterator[bytes]:
        yield from super()._lines(database, session_id, header, others)
        names = [name for name in _USAGE if name in database.columns("sessions")]
        if names and header.get("end_reason"):
            query = f"SELECT {', '.join(names)} FROM sessions WHERE id = ?1"  # noqa: S608 - fixed names
            for values in database.rows(query, (session_id,)):
                yield message_line(f"{session_id}/usage", usage=dict(zip(names, map(_plain, values), strict=True)))

    def _has_transcript_path(self, path: Path) -> bool:
        database = path.parent.parent / _DATABASE
        stored = _stored(database, ForeignDatabase(database).state()) if database.is_file() else frozenset[str]()
        return path.name.partition(".")[0].removeprefix("session_") not in stored

    def _is_from_agent(self, record: Record) -> bool:
        is_meta = record.get("role") == "session_meta" and "platform" in record
        return is_meta or ({"session_id", "session_start", "platform"} <= record.keys())


def _plain(value: Value) -> object:
    return as_text(value) if isinstance(value, bytes) else value


@lru_cache(maxsize=8)
def _stored(database: Path, state: object) -> frozenset[str]:  # noqa: ARG001 - a new state is read again
    """Return the IDs of the sessions in a database, or an empty set if it cannot be read."""
    try:
        return frozenset(as_text(session) for (session,) in ForeignDatabase(database).rows("SELECT id FROM sessions"))
    except SourceUnreadable:
        return frozenset()


def _relation(session: Row, parent: Row) -> str:
    """Return the relation of a session to its parent: `branch`, `continues` or `subagent`."""
    settings, ended = mapping(_loaded(string(session.get("model_config")))), parent.get("end_reason")
    if settings.get("_branched_from") or ended == "branched":
        return "branch"
    if settings.get("_reset_from") or ended in {"compression", "session_reset", "session_switch"}:
        return "continues"
    return "subagent"


FORMAT: ContainerFormat = Hermes()
