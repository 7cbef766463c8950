"""Resume deleted sessions in the real agents: `python -m tests.plugin.resume_run CLAUDE CODEX`.

CLAUDE and CODEX are the programs `claude` and `codex`. A scripted model answers on 127.0.0.1, so the run needs neither
a key nor a network. Each check prints one line. The exit status is 1 if a check fails.

The run creates a session with each agent, archives it, deletes the agent's file, runs `palaver resume` at a terminal,
types a prompt, and looks for the earlier conversation in the agent's request.
"""

import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping
from fcntl import ioctl
from pathlib import Path
from typing import Final, NamedTuple

from ..observe.llm.server import JSON, FakeProvider, Sent, message, serving
from .claude_code_run import streamed

PALAVER: Final = (sys.executable, "-m", "palaver")
FIRST, LATER, ANSWER = "Remember the blue kiln.", "What did I tell you", "The keeper noted it."
SECONDS: Final = 60
"""Maximum seconds until an agent at the terminal sends its request."""


class Agent(NamedTuple):
    """Agent with the command of a first session, and the pattern of its session files in the user's folder."""

    name: str
    program: str
    first: tuple[str, ...]
    files: str


def responses(_: JSON) -> Sent:
    """Return a reply of the Responses API as a stream of events."""
    item: JSON = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events: list[JSON] = [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": {"id": "m1", **item}},
        {"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Sent(body=body.encode(), headers={"content-type": "text/event-stream"})


def messages(_: JSON) -> Sent:
    """Return a reply of the Messages API as a stream of events."""
    return streamed(message(ANSWER))


def configure(folder: Path, project: Path, url: str) -> None:
    """Write settings with which the agents ask no question at their start, and use the scripted model."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    claude = {
        "hasCompletedOnboarding": True, "theme": "dark", "projects": {str(project): trusted},
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
    }  # fmt: skip
    (folder / ".claude.json").write_text(json.dumps(claude))
    (folder / ".codex").mkdir()
    (folder / ".codex" / "config.toml").write_text(f"""model = "gpt-5"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
[projects."{project}"]
trust_level = "trusted"
""")


def run(command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command without a terminal. Raises `CalledProcessError`."""
    subprocess.run(command, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def typed(command: tuple[str, ...], environment: Mapping[str, str], is_done: Callable[[], bool]) -> str:
    """Run a command at a terminal: answer its question with yes, type `LATER`, and return what the terminal showed."""
    process, screen = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, environment)
    ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown, asked, quiet, end = b"", False, time.monotonic(), time.monotonic() + SECONDS
    while not is_done() and time.monotonic() < end:
        if select.select([screen], [], [], 0.2)[0]:
            try:
                piece = os.read(screen, 65536)
            except OSError:
                break
            shown, quiet = shown + piece, time.monotonic()
            if b"\x1b[6n" in piece:
                os.write(screen, b"\x1b[1;1R")  # The agent asks for the position of the cursor.
            if not asked and b"Restore?" in shown:
                asked = True
                os.write(screen, b"y\r")
        elif asked and time.monotonic() - quiet > 3:
            os.write(screen, f"{LATER}".encode())
            time.sleep(0.5)
            os.write(screen, b"\r")
            quiet = time.monotonic()
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(screen)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.decode(errors="replace"))


def resumed(agent: Agent, folder: Path, project: Path, environment: Mapping[str, str], provider: FakeProvider) -> bool:
    """Create, archive, delete and resume a session. Return whether the agent's request has the earlier conversation."""
    run((agent.program, *agent.first, FIRST), project, environment)
    [file] = folder.glob(agent.files)
    session = file.stem[-36:]
    run((*PALAVER, "archive"), project, environment)
    before, calls = hashlib.sha256(file.read_bytes()).hexdigest(), len(provider.calls)
    file.unlink()
    states: list[str] = []

    def is_done() -> bool:
        if not states and file.exists():
            states.append(hashlib.sha256(file.read_bytes()).hexdigest())
        return any(LATER in json.dumps(call) for call in provider.calls[calls:])

    shown = typed((*PALAVER, "resume", session), environment, is_done)
    request = next((json.dumps(call) for call in provider.calls[calls:] if LATER in json.dumps(call)), "")
    checks = {
        "the file was restored byte for byte": states == [before],
        "the request contains the earlier prompt": FIRST in request,
        "the request contains the earlier answer": ANSWER in request,
    }
    print("\n".join(f"{'ok    ' if good else 'FAILED'} {agent.name}: {name}" for name, good in checks.items()))
    if not all(checks.values()):
        print(shown[-3000:])
    return all(checks.values())


def main(claude: str, codex: str) -> int:
    """Run both agents, and return the exit status."""
    agents = [
        (Agent("claude-code", claude, ("-p",), ".claude/projects/*/*.jsonl"), messages),
        (Agent("codex", codex, ("exec", "--skip-git-repo-check"), ".codex/sessions/*/*/*/*.jsonl"), responses),
    ]
    with tempfile.TemporaryDirectory() as scratch, serving() as provider:
        folder, programs = Path(scratch) / "home", Path(scratch) / "bin"
        project = folder / "shop"
        project.mkdir(parents=True)
        programs.mkdir()
        for agent, _ in agents:
            (programs / Path(agent.program).name).symlink_to(Path(agent.program).resolve())
        configure(folder, project, provider.url)
        environment = {
            "HOME": str(folder), "PALAVER_HOME": str(folder / "palaver"), "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "LOCAL_KEY": "none",
            "PATH": f"{programs}:{os.environ['PATH']}", "TERM": "xterm-256color",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }  # fmt: skip
        done = list[bool]()
        for agent, reply in agents:
            provider.default = reply
            done.append(resumed(agent, folder, project, environment, provider))
    return 0 if all(done) else 1


if __name__ == "__main__":
    if shutil.which(sys.argv[1]) is None or shutil.which(sys.argv[2]) is None:
        sys.exit("Usage: python -m tests.plugin.resume_run CLAUDE CODEX")
    sys.exit(main(*sys.argv[1:3]))
