"""Run the plugin in the real Claude Code with a scripted model: `python -m tests.plugin.claude_code_run PROGRAM`.

PROGRAM is the program `claude`. It needs neither a key nor a network. Each check prints one line. The exit status is 1
if a check fails.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.config import write_settings
from palaver.core.conversation import Origin
from palaver.core.home import DEMO, Home
from palaver.core.hooks import HookEvent
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.observe.pipeline import Pipeline

from ..observe.llm.server import JSON, FakeProvider, Sent, message, serving, tool_use

ROOT = Path(__file__).parents[2]
TOOL = "mcp__plugin_palaver_palaver__search"
AGENT = {"subagent_type": "palaver:search-conversation", "description": "Search", "run_in_background": False}
PROMPT = "do we keep the readings in SQLite or in JSON files"
IS_AGENT = "You search an archive of past coding conversations"


def streamed(reply: JSON) -> Sent:
    """Return a message of the Messages API as a stream of events."""
    content = [block for block in reply["content"] if block["type"] != "thinking"]
    events: list[JSON] = [{"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}]
    for index, block in enumerate(content):
        is_text = block["type"] == "text"
        start: JSON = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Sent(body=body.encode(), headers={"content-type": "text/event-stream"})


class ScriptedModel:
    """Model that waits for the MCP server, starts the agent, whose only step is a search, and then ends.

    While the server starts, Claude Code refuses the agent, because it has no tools.
    """

    def __init__(self) -> None:
        self._steps = {
            True: [tool_use((TOOL, {"query": "sqlite or json files"}))],
            False: [
                tool_use(("ToolSearch", {"query": f"select:{TOOL}"})),
                tool_use(("Agent", {**AGENT, "prompt": "Why SQLite?"})),
            ],
        }

    def reply(self, request: JSON) -> Sent:
        """Return the next step of the agent or of the session."""
        if "summary of the conversation" in json.dumps(request["messages"][-1]):
            return streamed(message("<summary>The readings are in SQLite.</summary>"))
        steps = self._steps[IS_AGENT in json.dumps(request.get("system", ""))]
        return streamed(steps.pop(0) if steps else message("Done."))


def archived_project(folder: Path) -> Path:
    """Archive the sample with its projects below `folder`, switch all hooks on, and return the project's folder."""
    for path in DEMO.rglob("*.jsonl"):
        copy = folder / "transcripts" / "projects" / path.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text("utf-8").replace("/home/demo", str(folder)), "utf-8")
    home = Home(folder / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([folder / "transcripts"]))
    with Archive(home).memories as core:
        core.remember(Memory("Use SQLite", "decision", namespace="project:tide-clock", origin=Origin.HUMAN))
    write_settings(home.config, {"hooks": list(HookEvent)})
    (folder / "tide-clock").mkdir()
    return folder / "tide-clock"


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command, and return its output. Print the output if the command fails."""
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if ran.returncode:
        print(f"{' '.join(command)}: {ran.stdout}{ran.stderr}")
    return ran.stdout


def checks(provider: FakeProvider, denied: list[JSON], listed: str, after: str) -> dict[str, bool]:
    """Return the checks and their results. `after` is a request of the compacted session."""
    agents = [call for call in provider.calls if IS_AGENT in json.dumps(call.get("system", ""))]
    session = json.dumps(provider.calls[0], ensure_ascii=False)
    tools = {tool["name"] for call in agents for tool in call["tools"]}
    return {
        "the MCP server is connected": "plugin:palaver:palaver" in listed and "Connected" in listed,
        "the text of session-start is in the context": "SessionStart hook additional context" in session,
        "the text of prompt is in the context": "UserPromptSubmit hook additional context" in after,
        "the agent and the skill are offered": all(
            f"palaver:{name}: " in session for name in ("search-conversation", "past-sessions")
        ),
        "the slash command is expanded": "Use the agent `palaver:search-conversation`" in session,
        "the agent has the three tools": {tool for tool in tools if tool.startswith("mcp__")}
        == {TOOL.replace("search", name) for name in ("search", "get_observations", "read")},
        "the tool was called without a question": not denied and "<recalled-" in json.dumps(agents[-1:]),
        "the text of session-start is there after a compaction": "SessionStart hook additional context" in after,
    }


def main(program: str) -> int:
    """Run Claude Code, and return the exit status."""
    with tempfile.TemporaryDirectory() as scratch, serving() as provider:
        folder = Path(scratch)
        project = archived_project(folder)
        environment = {
            "HOME": str(folder), "PALAVER_HOME": str(folder / "palaver"), "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        run([program, "plugin", "marketplace", "add", str(ROOT)], project, environment)
        run([program, "plugin", "install", "palaver@palaver"], project, environment)
        listed = run([program, "mcp", "list"], project, environment)
        provider.default = ScriptedModel().reply
        ended = json.loads(
            run([program, "-p", f"/palaver:ask {PROMPT}", "--output-format", "json"], project, environment)
        )
        provider.default = ScriptedModel().reply
        resume = [program, "--resume", ended["session_id"], "-p"]
        run([*resume, "/compact"], project, environment)
        run([*resume, PROMPT], project, environment)
        done = checks(provider, ended["permission_denials"], listed, json.dumps(provider.calls[-1]))
    print("\n".join(f"{'ok    ' if good else 'FAILED'} {name}" for name, good in done.items()))
    return 0 if all(done.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
