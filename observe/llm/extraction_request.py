"""Extraction requests: the call that asks a language model about one exchange or one session."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Protocol

import orjson
from msgspec import Struct

from ...archiver.store import MODEL_PREFIX, JobKind, StoredExchange
from ...core.observation import Observation
from .excerpt import Excerpt, shorten
from .extraction_reply import Reply
from .model_request import ModelRequest, ReplyModel, schema_of

TOKENS_OUT: Final = 4_000
"""Maximum tokens of a reply, including the model's thinking."""


class ExtractionTemplates(Protocol):
    """Prompt templates of extraction requests. `version` changes with every change of a template."""

    @property
    def version(self) -> str: ...

    @property
    def of_sessions(self) -> "ExtractionTemplates":
        """Templates of requests about sessions."""
        ...

    def system(self) -> str:
        """Return the system prompt. All requests have the same one, so that the provider can cache it."""
        ...

    def request(self, excerpt: Excerpt, nonce: str, known: Sequence[str]) -> str:
        """Return the user prompt.

        It contains the known titles, and the excerpt as quoted data between fences that contain `nonce`.
        """
        ...


class ExtractionRequest(Struct, frozen=True):
    """Request about one exchange or one session. For a session, `exchange` is the key of its first exchange.

    `digest` is a hash of content, prompt and model. It does not depend on earlier observations.
    """

    exchange: int
    excerpt: Excerpt
    digest: str
    model: str
    system: str
    text: str
    reply: type[ReplyModel] = Reply
    kind: JobKind = JobKind.EXCHANGE

    def question(self) -> ModelRequest:
        """Return the request to the model, identical for single calls and batches."""
        return ModelRequest(self.model, TOKENS_OUT, self.system, self.text, schema_of(self.reply))


class RequestBuilder:
    """Builder of requests to one model with one set of templates. `extractor` starts with `prefix`."""

    def __init__(self, templates: ExtractionTemplates, model: str, prefix: str = MODEL_PREFIX) -> None:
        self._templates, self._model = templates, model
        self.extractor = f"{prefix}{model}:{templates.version}"

    def build(self, stored: StoredExchange, known: Sequence[Observation] = ()) -> ExtractionRequest:
        """Return the request about an exchange. `known` are earlier observations of its session."""
        return self.about(stored.key, shorten(stored.exchange), [each.title for each in known])

    def about(self, exchange: int, excerpt: Excerpt, known: Sequence[str] = ()) -> ExtractionRequest:
        """Return the request about an excerpt. `known` are titles of earlier observations."""
        passages = orjson.dumps([(passage.line, passage.voice, passage.text) for passage in excerpt.passages])
        content = sha256(passages).hexdigest()
        return ExtractionRequest(
            exchange=exchange,
            excerpt=excerpt,
            digest=sha256(f"{content}:{self.extractor}".encode()).hexdigest(),
            model=self._model,
            system=self._templates.system(),
            # Authors of the transcript cannot know the digest of the whole text, so they cannot write a closing fence.
            text=self._templates.request(excerpt, content[:16], known),
        )
