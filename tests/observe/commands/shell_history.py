"""Sessions of shell commands, archived as Claude Code's transcripts."""

from pathlib import Path
from typing import Any

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user

MISSING = 'npm error Missing script: "test"'


class ShellHistory:
    """Builder of an archive with one session per call of `session`."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home, self.ids = folder / "projects", Home(home), list[str]()

    def session(self, *runs: tuple[str, str, bool], project: str = "shop", day: int = 1, asked: str = "Go on") -> str:
        """Write a session. Each run is a command, its output and whether it failed. A path edits a file."""
        number = len(self.ids) + 1
        name = f"3a2d3bd4-93aa-4cf4-a8de-{number:012d}"
        self.ids.append(name)
        lines: list[dict[str, Any]] = [user(asked)]
        for at, (command, output, failed) in enumerate(runs):
            call = f"toolu_{at}"
            edits = command.startswith("/")
            arguments = {"file_path": command, "content": ""} if edits else {"command": command}
            lines.append(assistant(tool("Write" if edits else "Bash", arguments, id=call), id=f"m{at}"))
            error = {"is_error": True} if failed else {}
            lines.append(result(output, id=call, **error))
        lines.append(assistant(text("Done."), id="end"))
        place = {"sessionId": name, "cwd": f"/home/demo/{project}", "timestamp": f"2026-03-{day:02d}T10:00:00.000Z"}
        target = self._folder / f"-home-demo-{project}"
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.jsonl").write_bytes(
            jsonl([{**line, **place, "uuid": f"{number}-{at}"} for at, line in enumerate(lines)])
        )
        return name

    def archive(self) -> Home:
        """Archive all sessions and return the home."""
        with Pipeline(self._home) as pipeline:
            pipeline.run(in_paths([self._folder]))
        return self._home
