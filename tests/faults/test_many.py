"""Eight servers and the archiver use one home without lock errors and see each other's writes at once."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from palaver.core.errors import StoreMissing
from palaver.core.home import Home

from ..archiver.formats.claude_code.claude_lines import jsonl
from ..archiver.history import ORIGINAL, talk
from .stored import prompts

SERVERS = 8
TURNS = 15
PALAVER = (sys.executable, "-m", "palaver")
DEADLINE = 200.0
"""Maximum seconds until the archiver sees a line while eight servers use both cores."""


class Server:
    """`palaver mcp` with one client that sends one JSON request per line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._last = process, 0

    def initialize(self) -> None:
        """Perform the MCP handshake."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        self._ask("initialize", about)

    def call(self, tool: str, **arguments: object) -> str:
        """Return the reply of a tool call, and raise an exception if the reply is an error."""
        reply = self._ask("tools/call", {"name": tool, "arguments": arguments})
        assert "error" not in reply, reply
        result = reply["result"]
        text = json.dumps(result, ensure_ascii=False)
        assert not result.get("isError"), text
        assert "locked" not in text, text
        return text

    def _ask(self, method: str, params: Mapping[str, object]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            reply = json.loads(line)
            if reply.get("id") == self._last:
                return reply
        raise AssertionError("the server has gone")


@contextmanager
def served(complaints: Path) -> Generator[Server]:
    command = (*PALAVER, "mcp", "--toolset", "conversation,theo", "--prefix")
    pipe = subprocess.PIPE
    with complaints.open("ab") as stderr, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr) as process:
        try:
            yield Server(process)
        finally:
            assert process.stdin
            process.stdin.close()


@contextmanager
def watching(complaints: Path) -> Generator[None]:
    with (
        complaints.open("ab") as stderr,
        subprocess.Popen((*PALAVER, "watch"), stdout=stderr, stderr=stderr) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


class StoredItems:
    """Items that any process has stored so far."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._lock = threading.Lock()

    def add(self, word: str) -> None:
        with self._lock:
            self._words.append(word)

    def recent(self, chance: random.Random) -> str:
        """Return one of the newest stored items."""
        with self._lock:
            return chance.choice(self._words[-SERVERS:])


def converse(server: Server, number: int, items: StoredItems) -> None:
    """Store an item, then search for an item that another process just stored."""
    chance = random.Random(number)
    server.initialize()
    for turn in range(TURNS):
        word = f"stored{number}x{turn}"
        content = f"{word} is what {chance.random()} stands for"
        reply = server.call("theo_memory_store", content=content, memory_type="fact")
        assert "success" in reply
        items.add(word)
        wanted = items.recent(chance)
        assert wanted in server.call("conversation_search", query=wanted, mode="text"), wanted
        assert wanted.startswith("typed") or any(wanted in content for content in recalled(server, wanted)), wanted


def recalled(server: Server, query: str) -> list[str]:
    """Return the text of the recalled memories without the framing of the reply."""
    reply = json.loads(server.call("theo_memory_recall", query=query))
    return [memory["content"] for memory in json.loads(reply["content"][0]["text"])["data"]["memories"]]


def stored(home: Home, prompt: str) -> bool:
    try:
        return prompt in prompts(home)
    except StoreMissing:
        return False


def write(transcript: Path, home: Home, items: StoredItems, done: threading.Event) -> int:
    """Append lines to a session and wait until each is found. Return the number of lines."""
    number = 0
    while not done.is_set():
        word = f"typed{number}"
        with transcript.open("ab") as file:
            file.write(jsonl(talk(word)))
        end = time.monotonic() + DEADLINE
        while not stored(home, f"{word}?"):
            assert time.monotonic() < end
            time.sleep(0.05)
        items.add(word)
        number += 1
    return number


def test_eight_servers_and_the_archiver(home: Path, tmp_path: Path) -> None:
    """No client gets a lock error, and the next query of each process finds items that others stored."""
    transcript = home / ".claude" / "projects" / "shop" / f"{ORIGINAL}.jsonl"
    transcript.parent.mkdir(parents=True)
    complaints, place, items, done = tmp_path / "complaints", Home(home / "palaver"), StoredItems(), threading.Event()
    with ExitStack() as stack:
        stack.enter_context(watching(complaints))
        pool = stack.enter_context(ThreadPoolExecutor(SERVERS + 1))
        stack.callback(done.set)
        writing = pool.submit(write, transcript, place, items, done)
        servers = [stack.enter_context(served(complaints)) for _ in range(SERVERS)]
        for task in [pool.submit(converse, server, number, items) for number, server in enumerate(servers)]:
            task.result()
        done.set()
        assert writing.result()
    assert "locked" not in complaints.read_text(errors="replace")
