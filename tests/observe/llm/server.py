"""Fake provider on a local socket that implements the Messages API with scripted replies.

Tests start the provider in a thread with `serving()`.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

JSON = dict[str, Any]
_PASSAGE = re.compile(r"^\[line (\d+), (\w+)\]\n((?:    .*\n|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Sent:
    """Scripted reply of the server: HTTP status, body (bytes verbatim, other values as JSON) and headers.

    `delay` is the wait in seconds before the reply. `truncated` breaks the connection in the middle of the body.
    `pause` is the wait in seconds before each byte of the body.
    """

    status: int = 200
    body: bytes | JSON = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    truncated: bool = False
    pause: float = 0.0


Reaction = Callable[[JSON], Sent]


def passages(params: JSON) -> list[tuple[int, str, str]]:
    """Return the line, speaker and text of each passage in a request."""
    asked = params["messages"][0]["content"]
    return [
        (int(line), voice, re.sub(r"^    ", "", text, flags=re.MULTILINE).strip())
        for line, voice, text in _PASSAGE.findall(asked)
    ]


def message(text: str, stop: str = "end_turn", usage: JSON | None = None) -> JSON:
    """Return a message of the Messages API."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": text}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 900, "output_tokens": 200, "cache_read_input_tokens": 1000},
    }


def tool_use(*calls: tuple[str, JSON], text: str = "") -> JSON:
    """Return a message of the Messages API that calls tools. Each call is a tuple of name and arguments."""
    said = [{"type": "text", "text": text}] if text else []
    blocks = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]
    return message("", "tool_use") | {"content": [*said, *blocks]}


def completion_calls(*calls: tuple[str, str], ids: bool = True) -> JSON:
    """Return a chat completion that calls tools. Each call is a tuple of name and arguments in JSON."""
    sent = [
        {"type": "function", "function": {"name": name, "arguments": arguments}}
        | ({"id": f"call_{number}_x"} if ids else {})
        for number, (name, arguments) in enumerate(calls)
    ]
    said = {"role": "assistant", "content": None, "tool_calls": sent}
    used = {"prompt_tokens": 1900, "completion_tokens": 200}
    return {"choices": [{"message": said, "finish_reason": "tool_calls"}], "usage": used}


def observation(
    *facts: tuple[str, int, str], title: str = "The model's title", narrative: str = "It went well."
) -> JSON:
    """Return an observation as a model writes it. Each fact is a tuple of text, line and quote."""
    return {
        "type": "learning",
        "title": title,
        "subtitle": "",
        "narrative": narrative,
        "facts": [{"text": text, "line": line, "quote": quote} for text, line, quote in facts],
        "concepts": ["Cache"],
    }


def learned(*observations: JSON) -> str:
    """Return a reply with observations, or with the verdict `nothing`."""
    return json.dumps({"verdict": "learned" if observations else "nothing", "observations": observations})


def finding(kind: str, title: str, *facts: tuple[str, int, str]) -> JSON:
    """Return a finding as a model writes it. Each fact is a tuple of text, line and quote."""
    stated = [{"text": text, "line": line, "quote": quote} for text, line, quote in facts]
    return {"type": kind, "title": title, "facts": stated}


def carded(*facts: tuple[str, str, int, str], title: str = "The model's card", findings: Sequence[JSON] = ()) -> str:
    """Return a reply about a session. Each fact is a tuple of kind, text, line and quote."""
    named = [{"kind": kind, "text": text, "line": line, "quote": quote} for kind, text, line, quote in facts]
    verdict = "card" if facts else "nothing"
    return json.dumps({"verdict": verdict, "title": title, "facts": named, "findings": list(findings)})


def is_about_session(params: JSON) -> bool:
    """Return whether a request asks for the card of a session."""
    return "<session-" in params["messages"][0]["content"]


def honest(params: JSON) -> Sent:
    """Reply like a good model: quote the last passage."""
    line, voice, text = passages(params)[-1]
    quote = text.splitlines()[0][:80]
    if is_about_session(params):
        return Sent(body=message(carded(("outcome", f"The {voice} said so.", line, quote))))
    return Sent(body=message(learned(observation((f"The {voice} said so.", line, quote)))))


def failing(status: int, kind: str, **headers: str) -> Sent:
    """Return an error reply of the API."""
    body = {"type": "error", "error": {"type": kind, "message": f"{kind} of the test"}}
    return Sent(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class FakeProvider:
    """State of the server. `script` contains the next replies, `default` the reply after that."""

    url: str = ""
    script: list[Reaction | Sent] = field(default_factory=list["Reaction | Sent"])
    default: Reaction = honest
    calls: list[JSON] = field(default_factory=list[JSON])
    models: list[str] = field(default_factory=list[str])
    keys: list[str] = field(default_factory=list[str])
    gets: list[str] = field(default_factory=list[str])

    def react(self, params: JSON) -> Sent:
        self.calls.append(params)
        reaction = self.script.pop(0) if self.script else self.default
        return reaction if isinstance(reaction, Sent) else reaction(params)


class _Handler(BaseHTTPRequestHandler):
    provider: FakeProvider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.provider.keys.append(self.headers["x-api-key"] or self.headers["authorization"])
        self._send(self.provider.react(body))

    def do_GET(self) -> None:
        self.provider.gets.append(self.path)
        models = [{"id": name, "object": "model"} for name in self.provider.models]
        listed = self.path in {"/models", "/v1/models"}
        self._send(Sent(body={"data": models}) if listed else failing(404, "not_found_error"))

    def _send(self, sent: Sent) -> None:
        time.sleep(sent.delay)
        body = sent.body if isinstance(sent.body, bytes) else json.dumps(sent.body).encode()
        try:
            self.send_response(sent.status)
            for name, value in ({"content-type": "application/json"} | dict(sent.headers)).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            for part in [bytes([byte]) for byte in body] if sent.pause else [body]:
                time.sleep(sent.pause)
                self.wfile.write(part[: len(part) // 2] if sent.truncated else part)
        except OSError:
            return  # the client gave up
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the signature is the library's
        pass


@contextmanager
def serving() -> Generator[FakeProvider]:
    """Run a provider during the block."""
    provider = FakeProvider()
    handler = cast("type[_Handler]", type("Handler", (_Handler,), {"provider": provider}))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
