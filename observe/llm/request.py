"""A request: what is asked about one exchange, and the name under which its answer is known."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import orjson
from msgspec import Struct

from ...archiver.store import MODEL_PREFIX, StoredExchange
from ...core.observation import Observation
from .excerpt import Excerpt, excerpt
from .messages import body
from .reply import Reply

TOKENS_OUT = 4_000
"""The most that an answer may have, a model's own thinking included."""


class Prompts(Protocol):
    """The words around what is asked. `version` changes whenever any of them does."""

    @property
    def version(self) -> str: ...

    def system(self) -> str:
        """What the model is told each time; the same for all requests, so that it can be cached."""
        ...

    def request(self, shown: Excerpt, nonce: str, known: Sequence[str]) -> str:
        """One exchange as quoted data between fences named by `nonce`, and titles that are already known."""
        ...


class Request(Struct, frozen=True):
    """One question. `digest` is equal for equal content, prompt and model, whatever was known before."""

    exchange: int
    shown: Excerpt
    digest: str
    model: str
    system: str
    text: str

    def params(self) -> dict[str, Any]:
        """The body of the call, alike for a single one and for one of a batch."""
        return body(self.model, TOKENS_OUT, self.system, self.text, Reply)

    def size(self) -> int:
        """Bytes of the body: no request has more tokens than that."""
        return len(orjson.dumps(self.params()))


class Requests:
    """Makes requests to one model with one set of prompts."""

    def __init__(self, prompts: Prompts, model: str) -> None:
        self._prompts, self._model = prompts, model
        self.extractor = f"{MODEL_PREFIX}{model}:{prompts.version}"

    def about(self, stored: StoredExchange, known: Sequence[Observation] = ()) -> Request:
        """The request about an exchange. `known` is what its session already taught."""
        shown = excerpt(stored.exchange)
        said = orjson.dumps([(passage.line, passage.voice, passage.text) for passage in shown.passages])
        content = sha256(said).hexdigest()
        return Request(
            exchange=stored.key,
            shown=shown,
            digest=sha256(f"{content}:{self.extractor}".encode()).hexdigest(),
            model=self._model,
            system=self._prompts.system(),
            # Who writes into a transcript cannot know the digest of the whole of it, and so cannot close the fence.
            text=self._prompts.request(shown, content[:16], [each.title for each in known]),
        )
