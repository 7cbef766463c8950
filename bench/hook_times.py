"""Measure how long hooks and commands take, as subprocesses: `python -m bench.hook_times`.

Hooks run with the command lines of the plugin. The times include the start of the shell and of the interpreter. Each
call is measured alternately in a process of its own and answered by a running process (`core/command_socket.py`), and
so is `python -c pass`. The archive has the 98 sessions. The hook at the end of a session only appends a line to a file
and starts `palaver` in the background. The benchmark replaces `palaver` with a program that does nothing, so that it
does not slow down other runs.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.command_socket import SWITCH, answering_process
from palaver.core.config import write_settings
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.observe.pipeline import Pipeline

from .shared import PROJECT, SetMissing, transcripts, unpack
from .stopwatch import Took, machine_load
from .table import table, write_section

_PLUGIN: Final = PROJECT / "agents"
_RUNS: Final = 9
_COMMON: Final = {"session_id": "bench", "transcript_path": "/x.jsonl"}
_CALLS: Final[Mapping[str, tuple[str, Mapping[str, object]]]] = {
    "session-start": ("SessionStart", {"source": "startup"}),
    "prompt": ("UserPromptSubmit", {"prompt": "The remediation prompt ignores nested rules of AGENTS.md"}),
    "tool, command": ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "bun run lint"}}),
    "tool, edit": ("PreToolUse", {"tool_name": "Edit", "tool_input": {"file_path": "frontend/src/App.tsx"}}),
    "session end": ("SessionEnd", {"reason": "exit"}),
}

_COMMANDS: Final = (
    ("search", "how are the integration tests run"),
    ("sessions",),
    ("ask", "how are the integration tests run"),
)


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
        sessions = store.sessions.all().values()
    [(cwd, _)] = Counter(session.cwd for session in sessions).most_common(1)
    shown = next(session.native_id for session in sessions if session.cwd == cwd)
    (folder / "palaver").write_text("#!/bin/sh\nexit 0\n")
    (folder / "palaver").chmod(0o755)
    write_settings(home.config, {"hooks": list(HookEvent)})
    off = Home(folder / "off")
    off.make()
    off.database.write_bytes(b"-")
    programs = Path(sys.executable).parent
    works = {f"hook: {name}": _hook(name, home, cwd, programs) for name in _CALLS if name != "session end"}
    works |= {f"palaver {words[0]}": _command(words, home) for words in (*_COMMANDS, ("show", shown), ("read", shown))}
    works["hook: session end"] = _hook("session end", home, cwd, folder)
    works["hook: tool, off"] = _hook("tool, command", off, cwd, programs)
    works["python -c pass"] = lambda _: subprocess.run([sys.executable, "-c", "pass"], check=True)
    own: dict[str, list[Took]] = {name: [] for name in works}
    answered: dict[str, list[Took]] = {name: [] for name in works}
    with _server(home):
        for _ in range(_RUNS):
            for name, work in works.items():
                for taken, variables in ((own, {SWITCH: "0"}), (answered, {})):
                    taken[name].append(_took(partial(work, variables)))
    return table(
        ["call", "own process: best ms", "median ms", "median CPU ms", "answered: best ms", "median ms", "ratio"],
        [_row(name, own[name], answered[name]) for name in works],
    )


def _row(name: str, own: Sequence[Took], answered: Sequence[Took]) -> list[str]:
    """Return a row of the table. The CPU time of an answered call is that of the server, so it is not shown."""
    walls, answers = [each.wall for each in own], [each.wall for each in answered]
    values = (min(walls), median(walls), median(each.cpu for each in own), min(answers), median(answers))
    return [name, *(f"{1000 * value:.0f}" for value in values), f"{median(answers) / median(walls):.2f}"]


@contextmanager
def _server(home: Home) -> Generator[None]:
    """Run the process that answers, which `palaver watch` starts otherwise."""
    command = [sys.executable, "-P", "-m", "palaver.cli.command_server"]
    environment = {**os.environ, "PALAVER_HOME": str(home.root), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as server:
        while answering_process(str(home.root)) is None:
            time.sleep(0.1)
        yield
        server.kill()


def _command(words: Sequence[str], home: Home) -> Callable[[Mapping[str, str]], object]:
    """Return a function that runs the installed command with these words."""
    command = [str(Path(sys.executable).parent / "palaver"), *words]
    environment = {**os.environ, "PALAVER_HOME": str(home.root)}
    return lambda variables: subprocess.run(
        command, stdout=subprocess.DEVNULL, env={**environment, **variables}, check=True
    )


def _hook(name: str, home: Home, cwd: str, programs: Path) -> Callable[[Mapping[str, str]], object]:
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
    return lambda variables: subprocess.run(
        ["/bin/sh", "-c", line],
        input=call.encode(),
        stdout=subprocess.DEVNULL,
        env={**environment, **variables},
        check=True,
    )


def _took(work: Callable[[], object]) -> Took:
    """Run a function and return its wall time, and the CPU time of the processes that it started."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
