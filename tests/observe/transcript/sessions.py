"""Synthetic sessions for tests of the pages of a session."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palaver.observe.transcript.session_views import SessionViews

from ...archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user
from ...archiver.history import ORIGINAL, History

CWD = "/code/app"


def conversation(*records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records with an ID, a time and the fields that every record has, one second apart."""
    return [
        {
            **record,
            "uuid": f"{number:08x}-0000-4000-8000-000000000000",
            "timestamp": f"2026-03-01T{10 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "sessionId": ORIGINAL,
            "cwd": CWD,
            **({"requestId": f"req-{number}"} if record["type"] == "assistant" else {}),
        }
        for number, record in enumerate(records)
    ]


def edit(path: str, old: str, new: str, id: str) -> list[dict[str, Any]]:  # noqa: A002
    """Return the call of an edit and its result."""
    arguments = {"file_path": f"{CWD}/{path}", "old_string": old, "new_string": new}
    done: dict[str, Any] = {"filePath": f"{CWD}/{path}", "oldString": old, "newString": new, "structuredPatch": []}
    return [assistant(tool("Edit", arguments, id), id=f"msg-{id}"), result("updated", done, id)]


def bash(command: str, output: str, id: str, *, failed: bool = False) -> list[dict[str, Any]]:  # noqa: A002
    """Return the call of a shell command and its result."""
    return [
        assistant(tool("Bash", {"command": command}, id), id=f"msg-{id}"),
        result(output, None, id, is_error=failed),
    ]


def long_session(exchanges: int = 6, runs: int = 25) -> list[dict[str, Any]]:
    """Return a session that needs several pages: prompts, prose and runs of calls in turn."""
    records: list[dict[str, Any]] = []
    for number in range(exchanges):
        records.append(user(f"Prompt {number}"))
        for run in range(runs):
            name = f"{number}-{run}"
            records.append(assistant(text(f"Prose {name}"), id=f"msg-prose-{name}"))
            records += edit(f"file{run}.py", "a", "a\nb", f"toolu-e-{name}")
            records += bash("make test", "2 failed" if run % 2 else "3 passed", f"toolu-b-{name}", failed=bool(run % 2))
    return conversation(*records)


@contextmanager
def viewed(folder: Path, records: Sequence[object]) -> Generator[tuple[SessionViews, int, History]]:
    """Archive a session, and return its views and its number in the store."""
    with History(folder) as history:
        history.write(records)
        history.ingest()
        number = history.store.sessions.find("claude-code", ORIGINAL)
        assert number is not None
        yield SessionViews(history.home, history.store), number, history
