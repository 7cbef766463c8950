"""Measure how long the hooks take, as subprocesses with the command lines of the plugin: `python -m bench.hook_times`.

The times include the start of the shell and of the interpreter. `python -c pass` is measured alternately, so that the
ratios of CPU time hold on other machines. The archive has the 98 sessions. The hook at
the end of a session only appends a line to a file and starts `palaver` in the background. The benchmark replaces
`palaver` with a program that does nothing, so that it does not slow down other runs.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.config import write_settings
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.observe.pipeline import Pipeline

from .shared import PROJECT, SetMissing, transcripts, unpack
from .stopwatch import Took, machine_load
from .table import table, write_section

_PLUGIN: Final = PROJECT / "agents"
_RUNS: Final = 15
_COMMON: Final = {"session_id": "bench", "transcript_path": "/x.jsonl"}
_CALLS: Final[Mapping[str, tuple[str, Mapping[str, object]]]] = {
    "session-start": ("SessionStart", {"source": "startup"}),
    "prompt": ("UserPromptSubmit", {"prompt": "The remediation prompt ignores nested rules of AGENTS.md"}),
    "tool, command": ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "bun run lint"}}),
    "tool, edit": ("PreToolUse", {"tool_name": "Edit", "tool_input": {"file_path": "frontend/src/App.tsx"}}),
    "session end": ("SessionEnd", {"reason": "exit"}),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the hooks and print the table. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.hook_times", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        with TemporaryDirectory(prefix="palaver-bench-") as folder:
            text = _measured(Path(folder))
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(text)
    if chosen.write:
        write_section("Hooks", f"`python -m bench.hook_times --write`; {machine_load()}\n\n{text}")
    return 0


def _measured(folder: Path) -> str:
    home = Home(folder / "home")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths(unpack(transcripts(), folder / "history")))
    with Store.open(home.database) as store:
        [(cwd, _)] = Counter(session.cwd for session in store.sessions.all().values()).most_common(1)
    (folder / "palaver").write_text("#!/bin/sh\nexit 0\n")
    (folder / "palaver").chmod(0o755)
    write_settings(home.config, {"hooks": list(HookEvent)})
    works = {name: _hook(name, home, cwd, Path(sys.executable).parent) for name in _CALLS if name != "session end"}
    works["session end"] = _hook("session end", home, cwd, folder)
    off = Home(folder / "off")
    off.make()
    off.database.write_bytes(b"-")
    works["tool, off"] = _hook("tool, command", off, cwd, Path(sys.executable).parent)
    works["python -c pass"] = lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)
    taken: dict[str, list[Took]] = {name: [] for name in works}
    for _ in range(_RUNS):
        for name, work in works.items():
            taken[name].append(_took(work))
    cpu = {name: median(each.cpu for each in times) for name, times in taken.items()}
    rows = [
        (
            name,
            *(f"{1000 * value:.0f}" for value in (min(walls), median(walls), cpu[name])),
            f"{cpu[name] / cpu['python -c pass']:.1f}",
        )
        for name, times in taken.items()
        for walls in [[each.wall for each in times]]
    ]
    return table(["hook", "best ms", "median ms", "median CPU ms", "CPU, relative to `python -c pass`"], rows)


def _hook(name: str, home: Home, cwd: str, programs: Path) -> Callable[[], object]:
    """Return a function that calls a hook as Claude Code does, with the program `palaver` of a folder."""
    event, fields = _CALLS[name]
    hooks = json.loads((_PLUGIN / "hooks" / "hooks.json").read_bytes())["hooks"]
    line = hooks[event][0]["hooks"][0]["command"]
    call = json.dumps({**_COMMON, "cwd": cwd, "hook_event_name": event, **fields})
    environment = {
        **os.environ,
        "PALAVER_HOME": str(home.root),
        "CLAUDE_PLUGIN_ROOT": str(_PLUGIN),
        "PATH": f"{programs}:/usr/bin:/bin",
    }
    return lambda: subprocess.run(
        ["/bin/sh", "-c", line], input=call.encode(), stdout=subprocess.DEVNULL, env=environment, check=True
    )


def _took(work: Callable[[], object]) -> Took:
    """Run a function and return its wall time, and the CPU time of the processes that it started."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
