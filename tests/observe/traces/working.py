"""Repository in which the user and agents work, with the archive of the agents' transcripts."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path
from typing import Any

from palaver.archiver.store import Store
from palaver.core.conversation import show_instant
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.traces import CodeTraces

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user

MINUTE = 60_000
BEGAN = 1_770_000_000_000


@dataclass
class Working:
    """Working directory with a clock that advances by ten minutes per action."""

    root: Path
    at: int = BEGAN
    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])

    def __post_init__(self) -> None:
        self.repository = self.root / "shop"
        self.repository.mkdir(parents=True)
        self.git("init", "--initial-branch=main")

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """Run git with a neutral identity at the time of the clock."""
        when = f"{self.at // 1000} +0000"
        names = {f"GIT_{role}_{part}": "x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        environment = os.environ | names | dates | {"GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", "-C", str(folder or self.repository), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def later(self) -> None:
        """Advance the clock by ten minutes."""
        self.at += 10 * MINUTE

    def type(self, name: str, content: str) -> Path:
        """Write a file as the user."""
        file = self.repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def commit(self) -> str:
        """Commit all changes and return the hash."""
        self.later()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "work")
        return self.git("rev-parse", "HEAD").strip()

    def agent(self, session: str, name: str, arguments: dict[str, Any], difference: Sequence[str] = ()) -> None:
        """Archive a tool call of an agent that changes a file. The caller changes the file itself."""
        self.later()
        when = {"timestamp": show_instant(self.at), "cwd": str(self.repository), "sessionId": session}
        number = sum(map(len, self.sessions.values()))
        details = {"filePath": arguments["file_path"], "structuredPatch": [{"lines": difference}] if difference else []}
        rows = [
            user(f"Please do number {number}", uuid=f"ask-{number}", **when),
            assistant(tool(name, arguments, id=f"toolu_{number}"), id=f"msg_{number}", uuid=f"do-{number}", **when),
            {**result("done", details, id=f"toolu_{number}"), **when},
            assistant(text("Done."), id=f"msg_{number}b", uuid=f"did-{number}", **when),
        ]
        self.sessions.setdefault(session, []).extend(rows)

    def write(self, session: str, name: str, content: str) -> Path:
        """Write a whole file as an agent. The transcript does not contain its previous content."""
        self.agent(session, "Write", {"file_path": str(self.repository / name), "content": content})
        return self.type(name, content)

    def edit(self, session: str, name: str, old: str, new: str) -> Path:
        """Replace a part of a file as an agent. The transcript contains the difference."""
        file = self.repository / name
        before, after = file.read_text(), file.read_text().replace(old, new)
        rows = [*ndiff(before.splitlines(), after.splitlines())]
        difference = [f"{row[0]}{row[2:]}" for row in rows if not row.startswith("?")]
        self.agent(session, "Edit", {"file_path": str(file), "old_string": old, "new_string": new}, difference)
        return self.type(name, after)

    def traces(self) -> CodeTraces:
        """Archive everything and return the traces."""
        from palaver.archiver.copies.raw_copy import RawArchive
        from palaver.archiver.ingest.ingest import Ingest
        from palaver.archiver.ingest.transcripts import in_paths

        folder, home = self.root / "projects", Home(self.root / "palaver")
        home.make()
        for session, rows in self.sessions.items():
            path = folder / "-shop" / f"{session}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jsonl(rows))
        if self.sessions:
            Ingest(Store.create(home.database), RawArchive(home.archive)).run(in_paths([folder]))
        return Archive(home).traces
