"""Servers with chat completions, such as Ollama: requests, replies, errors and prices."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from palaver.core.home import OWN_PROMPT_MARK
from palaver.core.reports import Extraction, Usage
from palaver.observe.llm.model_extractor import ModelExtractor
from palaver.observe.llm.model_servers import OpenAIApi
from palaver.observe.llm.provider import (
    ExtractionError,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    ReplyInvalid,
    RequestRefused,
)

from .agent import reply
from .conftest import PROMPTS, SESSIONS, Stage, changing_exchange
from .server import JSON, FakeProvider, Sent, serving

REQUEST = ModelRequest("qwen3:8b", 4000, "Say it.", "The text.", {"type": "object"})


def completion(text: str, **values: Any) -> dict[str, Any]:
    """Return a chat completion."""
    used = {"prompt_tokens": 1900, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 1000}}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "choices": [choice | values], "usage": used}


def honest(body: dict[str, Any]) -> Sent:
    """Reply like a good model."""
    return Sent(body=completion(reply(body["messages"][1]["content"])))


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with serving() as server:
        server.default = honest
        yield server


def run(stage: Stage, server: FakeProvider, key: str = "", **settings: object) -> Extraction:
    """Run the extractor once."""
    values: dict[str, Any] = {"llm": "openai", "llm_model": "qwen3:8b", "llm_price": (0, 0)} | settings
    config = stage.config(llm_url=f"{server.url}/v1", **values)
    provider = OpenAIApi(key, config.llm_url, 5.0, "OPENAI_API_KEY")
    extractor = ModelExtractor(
        stage.store,
        config,
        PROMPTS,
        lambda: provider,
        exchanges=True,
        clock=lambda: stage.now,
        sleep=stage.slept.append,
    )
    return extractor.run()


def failure(server: FakeProvider, sent: Sent, **settings: Any) -> ExtractionError:
    """Return the error of a call that gets a reply."""
    server.script = [sent]
    with pytest.raises(ExtractionError) as caught:
        OpenAIApi("", f"{server.url}/v1", **settings).ask(REQUEST)
    return caught.value


def test_a_server_without_key(stage: Stage, server: FakeProvider) -> None:
    """A local server gets single requests without a key, and observations replace those of the rules."""
    for number, session in enumerate(SESSIONS):
        stage.say(session, changing_exchange(number + 1))

    result = run(stage, server, budget_month=None)

    assert (result.asked, result.learned, result.cost) == (5, 5, 0)
    assert stage.extractors() == ["llm"] * 5
    assert server.keys == [None] * 5
    body = server.calls[0]
    assert (body["model"], 500 < body["max_tokens"] < 1_600) == ("qwen3:8b", True)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert all(message["content"].startswith(OWN_PROMPT_MARK) for message in body["messages"])
    assert body["response_format"]["json_schema"]["schema"]["additionalProperties"] is False


def test_a_stated_price_is_charged(stage: Stage, server: FakeProvider) -> None:
    """With a key and a price, tokens are charged, and a budget ends the run before it is exceeded."""
    stage.say("one", changing_exchange(1), changing_exchange(2))

    result = run(stage, server, key="test-key", llm_price=(1, 10), budget_month=0.015)

    assert server.keys == ["Bearer test-key"]
    assert (result.learned, result.cost) == (1, (900 + 1000) * 1_000 + 200 * 10_000)
    assert "budget_month" in str(result.stopped)


def test_usage_is_counted_if_the_server_does_not(server: FakeProvider) -> None:
    """A reply without token counts is charged with estimated tokens."""
    server.script = [Sent(body={**completion("The reply."), "usage": None})]

    assert OpenAIApi("", f"{server.url}/v1/").ask(REQUEST).usage == Usage(REQUEST.tokens(), 0, 0, 3)


def test_truncated_replies_are_reported(server: FakeProvider) -> None:
    """A reply that reached the maximum length is marked as truncated."""
    server.script = [Sent(body=completion("{", finish_reason="length"))]

    assert OpenAIApi("", f"{server.url}/v1").ask(REQUEST).truncated == "length"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ModelRefused), (404, ModelRefused), (400, RequestRefused), (422, RequestRefused), (429, ModelBusy)],
)
def test_errors_by_status(server: FakeProvider, status: int, kind: type[ExtractionError]) -> None:
    """Errors have the server's message, written as an object or a string, and cost nothing."""
    for body in ({"error": {"message": "no such model"}}, {"error": "no such model"}):
        error = failure(server, Sent(status, body, {"retry-after": "7"}), variable="OPENROUTER_API_KEY")
        assert type(error) is kind
        assert str(error).endswith("no such model")
        assert not error.maybe_charged
        assert not isinstance(error, ModelBusy) or error.after == 7.0
    assert status != 401 or "OPENROUTER_API_KEY" in error.hint


@pytest.mark.parametrize("body", [b"<html>", b"{}", json.dumps({"error": {"message": "x"}}).encode()])
def test_invalid_replies_may_be_charged(server: FakeProvider, body: bytes) -> None:
    """A reply that is no chat completion may have been charged."""
    error = failure(server, Sent(body=body))

    assert isinstance(error, ReplyInvalid)
    assert error.maybe_charged


def test_broken_connections_may_be_charged(server: FakeProvider) -> None:
    """A reply that breaks off or comes too late may have been charged. A refused connection cannot."""
    assert failure(server, Sent(body=completion("x"), truncated=True)).maybe_charged
    assert failure(server, Sent(body=completion("x"), delay=1.0), seconds=0.2).maybe_charged
    server.url = "http://127.0.0.1:9"
    assert not failure(server, Sent()).maybe_charged


def events(*texts: str, usage: bool = True) -> Sent:
    """Return a reply in pieces, as servers stream it."""
    sent: list[JSON] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    sent.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    if usage:
        sent.append({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7}})
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in sent) + "data: [DONE]\n\n"
    return Sent(body=body.encode(), headers={"content-type": "text/event-stream"})


def test_a_reply_in_pieces_is_put_together(server: FakeProvider) -> None:
    """A streamed reply gives the same answer, with the tokens that the server counted or an estimate."""
    for usage in (True, False):
        server.script = [events('{"ver', 'dict": ', '"nothing"}', usage=usage)]
        answer = OpenAIApi("", f"{server.url}/v1").ask(REQUEST)
        assert (answer.text, answer.truncated) == ('{"verdict": "nothing"}', "")
        assert (answer.usage.tokens_in == 30) == usage


def test_a_reply_that_repeats_itself_ends_early(server: FakeProvider) -> None:
    """A reply that only repeats a sentence or white space is not read to its end. It counts as invalid and charged."""
    for piece in ("\n", "The cache is warm. ", '{"text": "The cache is warm and it stays so.", "line": 3}, '):
        server.script = [events('{"facts": [', *[piece] * 2_000, usage=False)]
        with pytest.raises(ReplyInvalid, match="repeats itself") as caught:
            OpenAIApi("", f"{server.url}/v1").ask(REQUEST)
        assert caught.value.maybe_charged
        assert len(caught.value.reply) < 1_000
    facts = [f'{{"text": "Fact {number}", "line": {number}, "quote": "words {number * 7}"}}, ' for number in range(99)]
    server.script = [events(*facts)]
    assert OpenAIApi("", f"{server.url}/v1").ask(REQUEST).text == "".join(facts)


def test_a_server_without_schemas_gets_the_prompt_alone(server: FakeProvider) -> None:
    """If a server rejects the schema, the request is sent without it, and so are later ones."""
    server.script = [Sent(400, {"error": "unknown field response_format"}), events("{}"), events("{}")]
    provider = OpenAIApi("", f"{server.url}/v1")

    assert [provider.ask(REQUEST).text for _ in range(2)] == ["{}", "{}"]
    assert ["response_format" in call for call in server.calls] == [True, False, False]
