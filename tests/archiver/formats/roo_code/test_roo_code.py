"""Roo Code's tasks: their folder, and tasks that other tasks started."""

import json
from pathlib import Path

from palaver.archiver.formats.cline import Cline
from palaver.archiver.formats.roo_code import RooCode
from palaver.core.conversation import SessionKind

from ..container_files import contents

KNOWN = RooCode()


def test_a_task_that_another_task_started_is_a_sub_agent(home: Path) -> None:
    """The description of a task names its parent and its folder. The task is none of Cline."""
    extension = home / ".config" / "VSCodium" / "User" / "globalStorage" / "rooveterinaryinc.roo-cline"
    folder = extension / "tasks" / "0199aaaa-0000-7000-8000-000000000002"
    folder.mkdir(parents=True)
    (folder / "history_item.json").write_text(json.dumps({"task": "Test", "workspace": "/shop", "parentTaskId": "1"}))
    messages = [{"ts": 1, "type": "say", "say": "text", "text": "Write a test"}]
    (folder / "ui_messages.json").write_text(json.dumps(messages))

    [path] = KNOWN.containers()
    found = KNOWN.identify(Path("x"), *contents(KNOWN, path).values())
    assert (found.native_id, found.kind, found.parent_id) == (folder.name, SessionKind.SUBAGENT, "1")
    assert found.cwd == "/shop"
    assert not Cline().is_container(path)
