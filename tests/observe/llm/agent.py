#!/usr/bin/env python3
"""Coding agent that replaces `claude -p`, `codex exec` and `gemini` in tests: `agent.py BEHAVIOUR LOG`.

It appends each prompt, with its folder, variables and process ID, to the file LOG.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PASSAGE = re.compile(r"^\[line (\d+), (\w+)\]\n((?:    .*\n|\n)+)", re.MULTILINE)


def reply(prompt: str) -> str:
    """Return the reply of a good model: quote the last passage that is long enough."""
    every = PASSAGE.findall(prompt)
    line, voice, text = [each for each in every if len(each[2].strip()) > 8][-1]
    quote = text.strip().splitlines()[0][:80]
    fact = {"text": f"The {voice} said so.", "line": int(line), "quote": quote}
    if "<session-" in prompt:
        facts = [fact | {"kind": "outcome"}]
        return json.dumps({"verdict": "card", "title": "The agent's title", "facts": facts, "findings": []})
    observation: dict[str, Any] = {"type": "learning", "title": "The agent's title", "subtitle": ""}
    observation |= {"narrative": "It went well.", "facts": [fact], "concepts": []}
    return json.dumps({"verdict": "learned", "observations": [observation]})


def claude(text: str, *, error: bool = False) -> str:
    """Return the output of `claude -p --output-format json`."""
    used = {"input_tokens": 900, "output_tokens": 200, "cache_read_input_tokens": 1000}
    result = {"type": "result", "subtype": "success", "is_error": error, "result": text, "usage": used}
    return json.dumps(result | {"session_id": "1", "total_cost_usd": 0.01})


def codex(text: str) -> str:
    """Return the output of `codex exec --json`."""
    events: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "Hm."}},
        {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "I will look at it."}},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": text}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 1900, "cached_input_tokens": 1000, "output_tokens": 200},
        },
    ]
    return "\n".join(map(json.dumps, events))


def gemini(text: str) -> str:
    """Return the output of `gemini --output-format json`."""
    tokens = {"prompt": 1900, "candidates": 150, "thoughts": 50, "cached": 1000, "total": 2100}
    return json.dumps({"session_id": "1", "response": text, "stats": {"models": {"m": {"tokens": tokens}}}}, indent=2)


def main(behaviour: str, log: str) -> None:
    prompt = sys.stdin.read()
    own = {name: os.environ.get(name, "") for name in ("PALAVER_OWN_RUN", "CLAUDECODE")}
    files = sorted(path.name for path in Path.cwd().iterdir())
    seen = {"prompt": prompt, "folder": str(Path.cwd()), "files": files, "pid": os.getpid(), **own}
    seen["keys"] = [name for name in os.environ if name.endswith("_KEY")]
    with Path(log).open("a") as file:
        file.write(json.dumps(seen) + "\n")
    text = reply(prompt) if PASSAGE.search(prompt) else prompt
    match behaviour:
        case "claude":
            print("Warning: the configuration {old} is outdated", claude(text), sep="\n")
        case "fixed":
            print(claude("The reply, with an ü."))
        case "codex":
            print(codex(text))
        case "gemini":
            print("Loaded cached credentials.", gemini(f"```json\n{text}\n```"), sep="\n")
        case "chatty":
            print(f"Sure! I looked at {{it}} closely:\n\n```json\n{text}\n```\nAnything else?")
        case "refusing":
            print(claude("I cannot help with that."))
        case "malformed":
            print(claude(text[: len(text) // 2]))
        case "failing":
            print("no account: run /login", file=sys.stderr)
            sys.exit(1)
        case "unauthorised":
            error = {"type": "Error", "message": "Please set an Auth method", "code": 41}
            print(json.dumps({"session_id": "1", "error": error}, indent=2), file=sys.stderr)
            sys.exit(41)
        case "erring":
            print(claude("You have reached your limit, which resets at 5pm.", error=True))
        case "slow":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(log).with_suffix(".child").write_text(str(child.pid))
            time.sleep(600)
        case "leaving" | "detached":
            command = [sys.executable, "-c", "import time; time.sleep(600)"]
            child = subprocess.Popen(command, start_new_session=behaviour == "detached")
            Path(log).with_suffix(".child").write_text(str(child.pid))
            print(claude(text))
        case "endless":
            while True:
                print("x" * 1_000_000)
        case _:
            raise ValueError(behaviour)


if __name__ == "__main__":
    main(*sys.argv[1:])
