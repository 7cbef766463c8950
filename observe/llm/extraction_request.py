"""Extraction requests: the call that asks a language model about one session or one exchange."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Protocol

import orjson
from msgspec import Struct

from .booked_calls import CallSize
from .excerpt import Excerpt
from .model_request import ModelRequest, ReplyModel, schema_of

TOKENS_OUT: Final = 1_600
"""Maximum tokens of a reply, with the model's thinking. A card with five findings needs about 1,500."""
_SHORTEST: Final = 500
"""Maximum tokens of the reply about the shortest excerpt. A reply may be longer than the excerpt by so much."""
_CHARS: Final = 4
"""Typical characters of a token."""


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

    def request(self, excerpt: Excerpt, nonce: str, known: Sequence[str] = (), before: str = "") -> str:
        """Return the user prompt.

        It contains the known titles, the answer before the prompt, and the excerpt as quoted data between fences that
        contain `nonce`.
        """
        ...


class ExtractionRequest(Struct, frozen=True):
    """Request about one session or one exchange. For a session, `exchange` is the key of its first exchange.

    `digest` is a hash of content, prompt and model. It does not depend on earlier observations.
    """

    exchange: int
    excerpt: Excerpt
    digest: str
    question: ModelRequest

    @property
    def size(self) -> CallSize:
        """Maximum size of the call."""
        return CallSize(self.question.size(), self.question.tokens_out, self.digest, self.exchange)


class RequestBuilder:
    """Builder of requests to one model with one set of templates.

    `reply` is the structure of the replies. A reply has at most `TOKENS_OUT` tokens, and fewer for a short excerpt.
    """

    def __init__(self, templates: ExtractionTemplates, model: str, reply: type[ReplyModel]) -> None:
        self._templates, self._model, self._reply = templates, model, reply

    @property
    def version(self) -> str:
        """Version of the prompt."""
        return self._templates.version

    @property
    def name(self) -> str:
        """Model and version of the prompt, the end of the name of the extractor."""
        return f"{self._model}:{self.version}"

    def build(self, exchange: int, excerpt: Excerpt, known: Sequence[str] = (), before: str = "") -> ExtractionRequest:
        """Return the request about an excerpt. `known` are titles of earlier observations."""
        passages = orjson.dumps([(passage.line, passage.voice, passage.text) for passage in excerpt.passages])
        content = sha256(passages).hexdigest()
        # Authors of the transcript cannot know the digest of the whole text, so they cannot write a closing fence.
        text = self._templates.request(excerpt, content[:16], known, before)
        question = ModelRequest(
            self._model, _tokens_out(excerpt), self._templates.system(), text, schema_of(self._reply)
        )
        return ExtractionRequest(exchange, excerpt, sha256(f"{content}:{self.name}".encode()).hexdigest(), question)


def _tokens_out(excerpt: Excerpt) -> int:
    chars = sum(len(passage.text) for passage in excerpt.passages)
    return min(TOKENS_OUT, _SHORTEST + chars // _CHARS)
