"""Support for OpenClaw.

OpenClaw is based on pi and has its record types. Up to version 2026.7 it stored JSON lines in
`~/.openclaw/agents/<agent>/sessions`. Later versions store the same records in a database per agent.
`docs/formats/openclaw.md` names the sources.

- Supported: what is supported for pi, without the sender and the time that a chat channel adds to a prompt, and without
  reply tags; compressed rows, sub-agents, and transcripts of deleted and reset sessions.
- Not supported: custom entries, archives of deleted sessions in the database.
- Tested with: published files of March to June 2026, records and a schema of 2026.8, and fixtures of other readers.
- Test data: `examples/openclaw.jsonl`, and `agents/openclaw` of agent-sessions.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from ...core.conversation import Kind, Session, SessionKind, Turn
from ...core.errors import PartlyRead, SourceUnreadable
from ..lines import DecompressedFile, Record, clean, head_records
from .container_formats import REPORT_HINT, ContainedFormat
from .containers import ForeignDatabase, Value, as_bytes, as_text, file_name, fingerprint
from .json_values import first_string, json_file, mapping, string
from .pi import PiReader, entry_text, is_openclaw, is_session_header
from .transcript_format import ContainedSession, ContainerFormat, RecordEvents, RecordStamp, SkipReason

_DATABASE = "openclaw-agent.sqlite"
_NEEDED = frozenset({"session_id", "seq", "event_json"})
_KNOWN = frozenset({"created_at", "event_zstd", "event_utf8_bytes", "navigation_json"})
_FILE = re.compile(r"[^.]+\.jsonl(?:\.(?:deleted|reset)\.[\w.:+-]+)?")
_CHANNEL = re.compile(
    r"\A(?:(?:System: |\[media attached: |To send an image back, |Note: The previous agent run )[^\n]*\n\s*)*"
    r"(?:[A-Z][^\n(]* \(untrusted[^)\n]*\):\n```\w*\n.*?\n```\s*)*"
    r"(?:\[[^\]\n]*\d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]*\]\s*)?"
    r"(?:\[message_id: [^\]\n]*\]\n(?:[^\n:]{1,60}: )?)?"
    r"(?:\[Subagent Context\] .*?\[Subagent Task\]: )?",
    re.DOTALL,
)
"""Events, files, sender, time and instructions that the program adds to the beginning of a message."""
_MESSAGE_ID = re.compile(r"\s*\[message_id: [^\]\n]*\]\s*\Z")
"""ID that the program adds to the end of a message."""
_SUBAGENT = b"[Subagent Context] "
_QUEUED = re.compile(r"(?:\A\[Queued messages[^\n]*\]\s*|\n)---\nQueued #\d+\n")
"""Line before each of several messages that the user sent while the agent was busy."""
_REPLY_TAG = re.compile(r"\A\s*\[\[\s*reply_to[^\]\n]*\]\]\s*|\s*\[\[\s*reply_to[^\]\n]*\]\]\s*\Z")
"""Tag by which the model names the message that it replies to. The program does not show it."""
_PROGRAM = re.compile(
    r"\[cron:|Read HEARTBEAT\.md if it exists|System: \[[^\n]*\Z|\[System: |OpenClaw runtime context"
    r"|A new session was started via /new or /reset|\[OpenClaw heartbeat poll\]|Pre-compaction memory flush\."
)
"""Beginnings of messages that the program wrote."""


class OpenClawReader(PiReader):
    """Reader of one session."""

    def _user(self, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(entry_text(message.get("content")))
        typed = "" if mapping(message.get("provenance")) else _typed(text)
        return self._prompt(typed, stamp) if typed else self._injected(text, stamp) or SkipReason.EMPTY

    def _block(self, block: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        turns = super()._block(block, stamp, group)
        shown = [
            turn._replace(text=_REPLY_TAG.sub("", turn.text)) if turn.kind is Kind.PROSE else turn for turn in turns
        ]
        return [turn for turn in shown if turn.text]


def _typed(text: str) -> str:
    """Return what the user typed in a message, without the text that the program added. It may be empty."""
    messages = (_MESSAGE_ID.sub("", part) for part in _QUEUED.split(text) if not _PROGRAM.match(part))
    parts = (_CHANNEL.sub("", part, count=1).strip() for part in messages)
    return "\n\n".join(part for part in parts if part and not _PROGRAM.match(part))


class OpenClaw(ContainedFormat):
    """Sessions in `~/.openclaw/agents/<agent>`: in `sessions/<session>.jsonl`, or in `agent/openclaw-agent.sqlite`."""

    agent = "openclaw"
    reader_class = OpenClawReader
    suffixes = (".jsonl",)
    home_variable, home_folder, root_folders = "OPENCLAW_STATE_DIR", ".openclaw", ("agents",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folder of the agents, with the database of each."""
        home = Path(os.environ.get(self.home_variable) or Path.home() / self.home_folder).expanduser()
        return [(home / "agents", f"*/agent/{_DATABASE}")]

    def is_container(self, path: Path) -> bool:
        """Return whether a file is the database of an agent."""
        return path.name == _DATABASE and path.is_file()

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every session. Its lines are the records as the agent wrote them.

        Raises:
            SourceUnreadable: The database cannot be read.
            PartlyRead: After the last session, if the table lacks columns or has unknown ones.
        """
        database = ForeignDatabase(path)
        columns = database.columns("transcript_events")
        if not columns:
            return  # The database of an earlier version, which has settings only.
        if not columns >= _NEEDED:
            missing = ", ".join(sorted(_NEEDED - columns))
            raise PartlyRead(path, f"table transcript_events lacks {missing}", hint=REPORT_HINT)
        changed = "max(created_at)" if "created_at" in columns else "0"
        query = f"SELECT {as_bytes('session_id')}, count(*), max(seq), {changed} FROM transcript_events GROUP BY 1"  # noqa: S608 - fixed names
        agent = path.parent.parent.name
        for session, *state in database.rows(query):
            session_id = as_text(session)
            name = file_name(session_id)
            lines = partial(_lines, database, session_id, columns)
            at = int(state[2] or 0)
            yield ContainedSession(path / name, f"{agent}/sessions/{name}", fingerprint(*state), at, lines)
        if unknown := sorted(columns - _NEEDED - _KNOWN):
            problem = f"table transcript_events has the unknown columns {', '.join(unknown)}"
            raise PartlyRead(path, problem, hint=REPORT_HINT)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        The database or the file `sessions.json` has the key of each session. The key of a sub-agent names it as such.
        Without a key, the instructions at the beginning do.
        """
        header = next(filter(is_session_header, head_records(head)), Record())
        session_id = string(header.get("id")) or path.name.partition(".")[0]
        listed = _windows(path.parent) if path.parent.is_file() else _listed(path.parent / "sessions.json")
        key, spawner = listed.get(session_id, ("", ""))
        if ":subagent:" not in key and not (not key and _SUBAGENT in head):
            return Session(self.agent, session_id, cwd=string(header.get("cwd")))
        parent = next((session for session, (name, _) in listed.items() if name == spawner), "")
        return Session(self.agent, session_id, SessionKind.SUBAGENT, parent, cwd=string(header.get("cwd")))

    def recognises(self, records: Iterable[Record]) -> bool:
        """Return whether a file with these records is a session: an entry of pi, and one that only OpenClaw writes."""
        entries = list(records)
        return any(map(is_session_header, entries)) and any(map(is_openclaw, entries))

    def _has_transcript_name(self, name: str) -> bool:
        return _FILE.fullmatch(name) is not None

    def _has_transcript_path(self, path: Path) -> bool:
        return path.parent.name == "sessions"


def _listed(path: Path) -> dict[str, tuple[str, str]]:
    """Return the key of each session in a list of sessions, and the key of the session that started it."""
    entries = ((key, mapping(entry)) for key, entry in json_file(path).items())
    return {
        string(entry.get("sessionId")): (key, first_string(entry, "spawnedBy", "parentSessionKey"))
        for key, entry in entries
    }


def _windows(path: Path) -> dict[str, tuple[str, str]]:
    """Return the same of a database, the latest session first. The result is empty if the table cannot be read."""
    names = ("session_id", "session_key", "spawned_by", "parent_session_key")
    query = f"SELECT {', '.join(map(as_bytes, names))} FROM session_windows ORDER BY created_at DESC"  # noqa: S608 - fixed names
    try:
        rows = [tuple(map(as_text, row)) for row in ForeignDatabase(path).rows(query)]
    except SourceUnreadable:
        return {}
    return {session: (key, spawner or parent) for session, key, spawner, parent in rows}


def _lines(database: ForeignDatabase, session_id: str, columns: set[str]) -> Iterator[bytes]:
    """Yield the records of a session. Long records are compressed with zstd. A damaged one becomes a blank line."""
    compressed = "event_zstd" if "event_zstd" in columns else "NULL"
    query = f"SELECT {as_bytes('event_json')}, {compressed} FROM transcript_events WHERE session_id = ?1 ORDER BY seq"  # noqa: S608 - fixed names
    for text, packed in database.rows(query, (session_id,)):
        data = _record(database.path, text, packed)
        yield data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _record(path: Path, text: Value, packed: Value) -> bytes:
    if not isinstance(packed, bytes):
        return text if isinstance(text, bytes) else as_text(text).encode("utf-8", "surrogatepass")
    return io.BufferedReader(DecompressedFile(io.BytesIO(packed), path)).read()


FORMAT: ContainerFormat = OpenClaw()
