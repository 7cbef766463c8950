"""A row in the table of filters adds a filter everywhere. A hook also needs its function, and a type its phrases.

The tests add made-up rows to a copy of the package, and run the copy.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "palaver"
FILTER = {
    "core/query.py": (
        "    units: Annotated[\n",
        """    models: Annotated[
        _Values,
        FilterField(
            "model",
            "Only sessions with this language model.",
            "MODEL",
            lambda item: item.session.models if item.session else (),
            parameter=ToolParameter("Language model of the session"),
            unknown="No session used the model",
        ),
    ] = ()

""",
    )
}
HOOK = {
    "core/hooks.py": (
        '\n\nSESSION_END: Final = "session-end"',
        """    IDLE = (
        "idle",
        Hook(
            "Injects a line when the agent waits",
            {CLAUDE_CODE: "Notification", CODEX: "Idle"},
            budget=50,
            note="while the agent waits",
        ),
    )
""",
    ),
    "agents/hooks/hooks.py": (
        "    HookEvent.TOOL: tool_text,\n",
        '    HookEvent.IDLE: lambda call, place: HookAnswer("The agent waits.", ("obs-1",)),\n',
    ),
}
TYPE = {
    "core/observation.py": (
        '    DECISION = "decision", CardPart.DECISION',
        '    INCIDENT = "incident", CardPart.FINDING, "", "outage"\n',
    ),
    "observe/rules/phrases.json": (
        ' "classification.feature": {',
        ' "classification.incident": {"at_start": ["outage"]},\n',
    ),
}
SCRIPT = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
sys.path.insert(0, sys.argv[1])
from palaver.agents.clients.client_table import ServerEntry
from palaver.agents.clients.hook_setup import HOOK_CLIENTS, hooks_text
from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli.hooks import hooks
from palaver.cli.search import search
from palaver.core.home import Home
from palaver.core.observation import ObservationType
from palaver.observe.archive import Archive
from palaver.observe.pipeline import Pipeline
from palaver.observe.rules.classification import TypeSignals, classify
from palaver.templates.render import Renderer
import tables

def run(command, *words, **options):
    return CliRunner().invoke(command, words, **options).output

home = Home.find()
with Pipeline(home) as pipeline:
    pipeline.run(in_paths([Path(sys.argv[2])]))
home.config.write_text('hooks = ["idle"]\\n')
find, renderer = CONVERSATION.tools[0], Renderer()
with Archive(home).search as index:
    tool = {name: find.call(ConversationContext(index, renderer), {"query": "kettle", "models": [name]}).text
            for name in ("copper-1", "nickel-2")}
option = next(each for each in search.params if each.name == "types")
call = json.dumps({"session_id": "s1", "cwd": "/home/demo/shop", "hook_event_name": "Idle"})
print(json.dumps({
    "help": run(search, "--help"),
    "hits": {name: run(search, "kettle", "--model", name) for name in ("copper-1", "nickel-2", "coper-1")},
    "schema": find.schema,
    "tool": tool,
    "completion": [item.value for item in option.shell_complete(None, "inc")],
    "hook_help": run(hooks, "--help"),
    "run_help": run(hooks, "run", "--help"),
    "on": run(hooks, "status", "--json"),
    "reply": run(hooks, "run", "idle", input=call),
    "codex": hooks_text(HOOK_CLIENTS[0], ServerEntry("palaver", ("mcp",), {}), ["idle"]),
    "derived": {path.name: text for path, text in tables.derived().items()},
    "types": [ObservationType.parse("Outage"), classify(TypeSignals(["Outage of the shop"], "", "", (), changed=True))],
    "prompt": renderer.prompts("observe")[1],
}))
"""


def copied(folder: Path) -> Path:
    """Return a copy of the package with the three rows, beside the pages and scripts that are derived from them."""
    edits = FILTER | HOOK | TYPE
    package, edited = folder / "palaver", {name.partition("/")[0] for name in edits}
    package.mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name in edited:
            shutil.copytree(path.resolve(), package / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.name != "__pycache__":
            (package / path.name).symlink_to(path.resolve())
    (folder / "agents").symlink_to(package / "agents")
    for name in ("release", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    for name, (before, row) in edits.items():
        path = package / name
        text = path.read_text("utf-8")
        assert text.count(before) == 1, f"{name} has no unique line {before!r}"
        path.write_text(text.replace(before, row + before), "utf-8")
    return folder


def transcript(folder: Path) -> Path:
    """Write one session of each of two models, and return their folder."""
    for number, model in enumerate(("copper-1", "nickel-2")):
        name = f"{number}1111111-2222-4333-8444-555555555555"
        common = {"sessionId": name, "cwd": "/home/demo/shop", "gitBranch": "main", "version": "2.1.38"}
        asked = {"role": "user", "content": f"Where is the kettle of {model}?"}
        said = [{"type": "text", "text": f"The kettle stands on shelf {number}."}]
        answer = {"id": "m1", "role": "assistant", "model": model, "content": said}
        at = "2026-03-01T10:00:0{}.000Z"
        lines = [
            {"type": "user", "uuid": "u1", "parentUuid": None, "timestamp": at.format(0), **common, "message": asked},
            {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "timestamp": at.format(5), **common}
            | {"message": answer},
        ]
        path = folder / "projects" / "-home-demo-shop" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Everything that the copy shows of the three rows."""
    folder = copied(tmp_path_factory.mktemp("copy"))
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {"PYTHONPATH": str(folder), "HOME": str(home), "PALAVER_HOME": str(home / "data")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder / "release"), str(transcript(home / "claude"))],
        env=environment | {"COLUMNS": "200"},
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_a_filter_is_offered_everywhere(shown: dict[str, Any]) -> None:
    """The option is in the help, the parameter in the schema of the tool, and both are in the documentation."""
    assert "--model MODEL" in shown["help"]
    assert "Only sessions with this language model." in shown["help"]
    assert shown["schema"]["properties"]["models"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "Language model of the session",
    }
    row = "| `--model MODEL` | Only sessions with this language model. | `models` |"
    assert row in shown["derived"]["search.md"]


def test_a_filter_removes_other_hits(shown: dict[str, Any]) -> None:
    """Command line and tool return only the hits of the value. Without a hit, the reply names similar values."""
    for results in (shown["hits"], shown["tool"]):
        assert "of copper-1" in results["copper-1"]
        assert "nickel" not in results["copper-1"]
        assert "of nickel-2" in results["nickel-2"]
        assert "copper" not in results["nickel-2"]
    assert "No session used the model `coper-1`. Did you mean `copper-1`" in shown["hits"]["coper-1"]
    assert "Hits without --model: 2" in shown["hits"]["coper-1"]


def test_a_hook_is_offered_everywhere(shown: dict[str, Any]) -> None:
    """The event is in the help, the setting, the configuration of both agents that have it, and the documentation."""
    assert "`idle` (while the agent waits)" in " ".join(shown["hook_help"].split())
    assert ",idle,session-end}" in shown["run_help"]
    assert json.loads(shown["on"])["events"]["idle"] is True
    assert list(json.loads(shown["codex"])["hooks"]) == ["Idle"]
    assert "hooks run idle" in shown["codex"]
    assert "palaver-hook.sh" in str(json.loads(shown["derived"]["hooks.json"])["hooks"]["Notification"])
    assert "| `idle` | off | Injects a line when the agent waits | 50 tokens |" in shown["derived"]["plugin.md"]


def test_a_hook_injects_its_text(shown: dict[str, Any]) -> None:
    """The command of the hook prints the text of its function."""
    output = {"hookEventName": "Idle", "additionalContext": "The agent waits."}
    assert json.loads(shown["reply"]) == {"hookSpecificOutput": output}


def test_a_type_is_offered_everywhere(shown: dict[str, Any]) -> None:
    """The type is in the schema of the tool, the completion, the prompt of a model, and the documentation."""
    assert "incident" in shown["schema"]["properties"]["types"]["description"].split(", ")
    assert shown["completion"] == ["incident"]
    assert "- type: incident, decision," in shown["prompt"]
    assert "| `incident` | `outage` |" in shown["derived"]["observations.md"]


def test_a_type_is_recognised(shown: dict[str, Any]) -> None:
    """Its other names are accepted, and the rules assign it by its phrases."""
    assert shown["types"] == ["incident", "incident"]


def test_derived_files_are_current() -> None:
    """`release/tables.py` would change no file."""
    code = "import json, tables; print(json.dumps([path.name for path, text in tables.derived().items()"
    code += " if path.read_text('utf-8') != text]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "release", check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == []
