"""docs/json.md lists the fields of the JSON output. `--update-golden` rewrites its lists."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from . import demo

PAGE = Path(__file__).parents[1] / "docs" / "json.md"
COMMANDS = {
    "ask": ("ask", "sqlite or json files"),
    "ask without an answer": ("ask", "which hotel did the team book"),
    "search": ("search", "sqlite or json files", "-n", "2"),
    "search without a hit": ("search", "zzzzqqq"),
    "search --in output": ("search", "--in", "output", "test"),
    "search --in code": ("search", "--in", "code", "return"),
    "search --symbol": ("search", "--symbol", "heat_kiln"),
    "show": ("show", "HIT"),
    "read": ("read", "PATH", "13-15"),
    "show, for a session with a sub-agent": ("show", "3a17e5d0"),
    "read, for a session with a sub-agent": ("read", "3a17e5d0"),
    "timeline": ("timeline", "HIT"),
    "sessions": ("sessions",),
    "projects": ("projects",),
    "session tag": ("session", "tag", "0b6f", "later"),
    "digest": ("digest", "--since", "2026-01-01"),
    "usage": ("usage", "--by", "session"),
    "resume": ("resume", "0b6f", "--folder", "FOLDER"),
    "handoff": ("handoff", "0b6f"),
    "share": ("share", "0b6f"),
    "fix": ("fix", "max() arg is an empty sequence"),
    "how": ("how", "test"),
    "blame": ("blame", "CODE"),
    "archive": ("archive", "FOLDER"),
    "remember": ("remember", "Prefer plain sqlite3 over an ORM", "--project", "tide-clock"),
    "recall": ("recall", "sqlite3"),
    "memories list": ("memories", "list"),
    "context": ("context", "--project", "tide-clock"),
    "status": ("status",),
    "stats": ("stats",),
    "doctor": ("doctor",),
    "fsck": ("fsck",),
    "redact": ("redact",),
    "forget": ("forget", "--mentions", "sqlite"),
    "install": ("install", "cursor", "service"),
    "hooks status": ("hooks", "status"),
    "toolsets": ("toolsets",),
    "an error": ("show", "obs-999999"),
}
"""Commands by their heading. HIT, PATH and FOLDER are replaced by values of the sample archive."""


def fields(value: object, prefix: str = "") -> Iterator[str]:
    """Yield the path of each field, with `[]` for the elements of a list."""
    if isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            yield f"{prefix}{name}"
            yield from fields(each, f"{prefix}{name}.")
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from fields(each, f"{prefix.removesuffix('.')}[].")


def run(*arguments: str) -> Any:
    """Run a command with --json and return its output."""
    command = [sys.executable, "-m", "palaver", *arguments, "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    return json.loads(ran.stdout)


def numeric_times(value: object) -> list[object]:
    """Return the numbers that are times of this century in milliseconds."""
    if isinstance(value, dict | list):
        inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        return [time for each in inner for time in numeric_times(each)]
    return [value] if isinstance(value, int | float) and 1e12 < value < 4e12 else []


def listed(heading: str, arguments: tuple[str, ...], values: dict[str, str]) -> str:
    """Return the section of a command: its heading and its fields in alphabetical order."""
    found = run(*(values.get(argument, argument) for argument in arguments))
    assert not numeric_times(found), f"{heading}: times are not ISO 8601"
    names = sorted({re.sub(r"(?<=without\.).*|(?<=by_skip_reason\.).*", "…", name) for name in fields(found)})
    return f"## {heading}\n\n" + "".join(f"- `{name}`\n" for name in names)


@pytest.fixture
def readable_by_others() -> Iterator[None]:
    """Create files that other users can read, so that `doctor` reports a problem."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("readable_by_others")
def test_page_lists_the_fields_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Each command on the page prints exactly the listed fields."""
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    shutil.copytree(tmp_path / "projects", tmp_path / "more")
    (tmp_path / "kiln.py").write_text('def heat_kiln():\n    """Heat it."""\n    return 1\n')
    run("index", str(tmp_path / "kiln.py"))
    hit = run("search", "sqlite or json files")["results"][0]
    values = {
        "HIT": hit["id"],
        "PATH": hit["path"],
        "FOLDER": str(tmp_path / "more"),
        "CODE": str(tmp_path / "kiln.py"),
    }

    today = "\n".join(listed(heading, arguments, values) for heading, arguments in COMMANDS.items())
    introduction = PAGE.read_text("utf-8").split("## ", 1)[0]
    if request.config.getoption("--update-golden", default=False):
        PAGE.write_text(introduction + today, "utf-8")

    assert PAGE.read_text("utf-8") == introduction + today
