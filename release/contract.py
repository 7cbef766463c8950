"""Write what users and agents see of the product to a folder: help, output of commands, and schemas of tools.

Two folders of different versions are compared with `diff -r`. Run from a checkout: `python release/contract.py FOLDER`.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

_PALAVER = (sys.executable, "-m", "palaver")
_READING = (
    "status",
    "sessions",
    "projects",
    "open",
    "stats",
    "doctor",
    "toolsets",
    "memories list",
    "documents list",
    "forget --list",
    "redact",
    "hooks status",
    "model",
    "install --print claude-code",
    "context",
    "search deploy",
    "search deploy --by session",
    "search zzzzqqq",
    "search --in output error",
    "ask why did the deploy fail",
    "fix connection refused",
    "how run the tests",
    "show obs-1",
    "read obs-1",
    "timeline obs-1",
    "recall database",
)
"""Commands that read, with a demo archive."""
_VOLATILE = re.compile(r"\d+(?:[.,]\d+)? (?:ms|s|kB|MB|GB|bytes)\b|recalled-\d+|\d{4}-\d\d-\d\dT[\d:.]+Z?|\b\d{9,}\b")
"""Times, sizes and nonces, which differ between two runs of one version."""


def _run(home: Path, *arguments: str) -> str:
    """Return the output of a command. Paths of the home and volatile numbers are replaced."""
    environment = os.environ | {"HOME": str(home), "PALAVER_HOME": str(home / "palaver"), "COLUMNS": "100"}
    done = subprocess.run(
        [*_PALAVER, *arguments], env=environment, check=False, capture_output=True, text=True, timeout=300
    )
    text = f"{done.stdout}\n--- stderr\n{done.stderr}\n--- status {done.returncode}\n"
    return _VOLATILE.sub("N", text.replace(str(home), "HOME"))


def _commands() -> list[list[str]]:
    """Return the words of every command and subcommand."""
    from palaver.cli.commands import COMMANDS

    commands: list[list[str]] = []
    for name in COMMANDS:
        commands.append([name])
        lines = _run(Path("/nonexistent"), name, "--help").partition("Commands:")[2].partition("---")[0].splitlines()
        commands += [[name, line.split()[0]] for line in lines if re.match(r"  \w", line)]
    return commands


async def _schemas(home: Path, toolset: str) -> str:
    """Return the tools of a server with their schemas as JSON."""
    environment = os.environ | {"HOME": str(home), "PALAVER_HOME": str(home / "palaver")}
    server = StdioServerParameters(
        command=_PALAVER[0], args=[*_PALAVER[1:], "mcp", "--toolset", toolset], env=environment
    )
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
    return json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools], indent=1, sort_keys=True)


def main() -> None:
    """Write one file for each command and toolset."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        home = Path(scratch)
        _run(home, "up")
        (folder / "help.txt").write_text(_run(home, "--help"))
        for words in _commands():
            (folder / f"help {' '.join(words)}.txt").write_text(_run(home, *words, "--help"))
        for line in _READING:
            words = line.split()
            (folder / f"{line}.txt").write_text(_run(home, *words))
            (folder / f"{line}.json").write_text(_run(home, *words, "--json"))
        for toolset in ("conversation", "theo", "historian", "rag", "fabric"):
            (folder / f"tools {toolset}.json").write_text(asyncio.run(_schemas(home, toolset)))


if __name__ == "__main__":
    main()
