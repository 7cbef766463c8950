"""Kilo Code: tasks of the older extension, and the database of the newer one."""

import json
from pathlib import Path

from palaver.archiver.formats.kilo_code import KiloCode
from palaver.archiver.formats.opencode import OpenCode
from palaver.core.conversation import Kind, Speaker

from ..container_files import contents, database, turns

KNOWN = KiloCode()
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
INSERT INTO session VALUES ('ses_1', NULL, '/shop', 'Login', 1);
INSERT INTO message VALUES ('msg_1', 'ses_1', '{"role": "user"}');
INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', '{"type": "text", "text": "Fix the login"}');
"""


def test_tasks_and_sessions_are_found(home: Path) -> None:
    """The database has the form of OpenCode's, but its sessions belong to Kilo Code."""
    kilo = home / ".local" / "share" / "kilo" / "kilo.db"
    database(kilo, SCHEMA).close()
    task = home / ".config" / "Code" / "User" / "globalStorage" / "kilocode.kilo-code" / "tasks" / "t1"
    task.mkdir(parents=True)
    (task / "ui_messages.json").write_text(json.dumps([{"ts": 1, "type": "say", "say": "text", "text": "Older"}]))

    assert list(KNOWN.containers()) == [task / "ui_messages.json", kilo]
    assert turns(KNOWN, kilo) == {"kilo.db/ses_1.jsonl": [(Speaker.HUMAN, Kind.PROMPT, "Fix the login")]}
    assert turns(KNOWN, task / "ui_messages.json") == {"sessions/t1.jsonl": [(Speaker.HUMAN, Kind.PROMPT, "Older")]}
    found = KNOWN.identify(Path("x"), *contents(KNOWN, kilo).values())
    assert (found.agent, found.native_id) == ("kilo-code", "ses_1")
    assert not OpenCode().is_container(kilo)
