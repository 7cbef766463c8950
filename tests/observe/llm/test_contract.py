"""Every provider of a language model returns an answer or one of four errors."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.core.reports import Usage
from palaver.observe.llm import model_servers
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.model_servers import MessagesApi, OpenAIApi
from palaver.observe.llm.provider import (
    ExtractionError,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    Provider,
    RequestRefused,
)

from . import agent
from .server import FakeProvider, Sent, failing, message, serving
from .test_openai_api import completion

TEXT = "The reply, with an ü."
REQUEST = ModelRequest("model", 100, "Say it.", TEXT, {"type": "object"})
Opener = Callable[[str], Provider]
"""Function that opens a provider whose next call answers, fails, refuses or is too slow."""


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with serving() as server:
        yield server


def sent(case: str, body: dict[str, object]) -> Sent:
    """Return the reply of a server in a case."""
    refusal = failing({"refusing": 400, "unusable": 404}.get(case, 200), "invalid_request_error")
    return refusal if case in {"refusing", "unusable"} else Sent(body=body, delay=2.0 if case == "slow" else 0.0)


@pytest.fixture(params=["messages", "openai", "command"])
def opener(request: pytest.FixtureRequest, server: FakeProvider, tmp_path: Path) -> Opener:
    """Return the function that opens a provider of one kind."""

    def messages(case: str) -> Provider:
        server.script = [sent(case, message(TEXT))]
        return MessagesApi("", server.url, 0.5 if case == "slow" else 60.0)

    def openai(case: str) -> Provider:
        server.script = [sent(case, completion(TEXT))]
        return OpenAIApi("", f"{server.url}/v1", 0.5 if case == "slow" else 60.0)

    def command(case: str) -> Provider:
        behaviour = {"answering": "fixed", "refusing": "failing"}.get(case, case)
        program = "/nowhere/agent" if case == "unusable" else sys.executable
        words = (program, agent.__file__, behaviour, str(tmp_path / "log"))
        return AgentCommand(words, 0.5 if case == "slow" else 60.0)

    return {"messages": messages, "openai": openai, "command": command}[request.param]


def test_answer(opener: Opener) -> None:
    """An answer has the text of the model and the tokens used."""
    provider = opener("answering")

    answer = provider.ask(REQUEST)
    provider.close()

    assert (answer.text, answer.truncated) == (TEXT, "")
    assert answer.usage == Usage(900, 0, 1000, 200)
    assert "The reply, with an" in answer.raw


def test_refused_request(opener: Opener) -> None:
    """A refusal of one request is distinguished from a refusal of all."""
    with pytest.raises(RequestRefused):
        opener("refusing").ask(REQUEST)


def test_unusable_provider(opener: Opener) -> None:
    """A provider that can answer no request has a hint for the settings, and costs nothing."""
    with pytest.raises(ModelRefused) as caught:
        opener("unusable").ask(REQUEST)

    assert "config.toml" in caught.value.hint
    assert not caught.value.maybe_charged


def test_timeout(opener: Opener) -> None:
    """A call that takes too long ends, may have been charged, and can be repeated."""
    with pytest.raises(ModelBusy) as caught:
        opener("slow").ask(REQUEST)

    assert caught.value.maybe_charged


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("kind", [MessagesApi, OpenAIApi])
def test_slow_replies_end(server: FakeProvider, kind: type[MessagesApi | OpenAIApi], status: int) -> None:
    """A reply that arrives byte by byte ends after the time limit, although each read is fast."""
    server.script = [Sent(status, b" " * 1_000, pause=0.02)]
    start = time.monotonic()

    with pytest.raises(ExtractionError):
        kind("", server.url, 0.5).ask(REQUEST)

    assert time.monotonic() - start < 10


@pytest.mark.parametrize("kind", [MessagesApi, OpenAIApi])
def test_large_replies_are_refused(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch, kind: type[MessagesApi | OpenAIApi]
) -> None:
    """A reply above the maximum size is not read completely, and may have been charged."""
    monkeypatch.setattr(model_servers, "BYTES_MAX", 2_000_000)
    server.script = [Sent(body=b" " * 3_000_000)]

    with pytest.raises(ModelBusy, match="larger than 2 MB") as caught:
        kind("", server.url).ask(REQUEST)

    assert caught.value.maybe_charged


@pytest.mark.parametrize("key", ["", "test-key"])
def test_no_key_is_sent_without_a_key(server: FakeProvider, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A server of the user gets the configured key or none, never one that the SDK finds in the environment."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other")
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    server.script = [sent("answering", message(TEXT)), sent("answering", completion(TEXT))]

    MessagesApi(key, server.url).ask(REQUEST)
    OpenAIApi(key, f"{server.url}/v1").ask(REQUEST)

    assert server.keys == [f"Bearer {key}" if key else None] * 2


def test_no_proxy_for_this_machine(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to a server on this machine do not go through the proxy in the environment."""
    with serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        server.script = [sent("answering", message(TEXT)), sent("answering", completion(TEXT))]

        MessagesApi("", server.url).ask(REQUEST)
        OpenAIApi("", f"{server.url}/v1").ask(REQUEST)

        assert (len(server.calls), proxy.calls) == (2, [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server: FakeProvider, status: int) -> None:
    """A redirect is reported with its address, which gets neither the key nor the prompt."""
    with serving() as other:
        moved = Sent(status, headers={"location": f"{other.url}/v1/models?token=5"})
        server.script = [moved, moved]

        for provider in (MessagesApi("test-key", server.url), OpenAIApi("test-key", f"{server.url}/v1")):
            with pytest.raises(ModelRefused) as caught:
                provider.ask(REQUEST)
            assert str(caught.value) == f"llm_url redirects to {other.url}/v1/models"
            assert "config.toml" in caught.value.hint
            assert not caught.value.maybe_charged

        assert (other.calls, other.gets) == ([], [])
