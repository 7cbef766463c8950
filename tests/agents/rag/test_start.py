"""Test of the time until a rag server lists its tools."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from ... import demo

START_MAX = 1.3
"""Maximum CPU time of the start, compared to that of the default toolset."""


def send(stream: IO[bytes], **message: Any) -> None:
    """Send a JSON-RPC message."""
    stream.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    stream.flush()


def start_seconds(toolset: str) -> float:
    """Return the CPU time of a server that starts, lists its tools and ends."""
    command = [sys.executable, "-m", "palaver", "mcp", "--toolset", toolset]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    client = {"name": "test", "version": "1"}
    send(
        server.stdin,
        id=1,
        method="initialize",
        params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
    )
    server.stdout.readline()
    send(server.stdin, method="notifications/initialized")
    send(server.stdin, id=2, method="tools/list")
    assert b'"inputSchema"' in server.stdout.readline()
    server.stdin.close()
    server.stdout.close()
    _, _, used = os.wait4(server.pid, 0)
    server.returncode = 0
    return used.ru_utime + used.ru_stime


def test_the_start_is_fast(tmp_path: Path, monkeypatch: Any) -> None:
    """From the start to the listed tools, the server takes at most 1.3 times as long as the default server."""
    monkeypatch.setenv("PALAVER_HOME", str(demo.archived(tmp_path).root))
    times = [(start_seconds("conversation"), start_seconds("rag")) for _ in range(4)]
    plain, rag = (min(each) for each in zip(*times, strict=True))

    assert rag <= START_MAX * plain
