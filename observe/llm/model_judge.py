"""Judge that asks a language model about pairs of memories if the rules find only a common subject."""

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal

import orjson
from msgspec import json

from ...archiver.store import Store
from ...core.config import Config
from ...core.text import readable
from ..memory import Judgement, MemoryPair, RuleJudge, Verdict
from .ledger import BookedCalls, CallSize
from .model_settings import PrivateProjects
from .provider import (
    Answer,
    BudgetExhausted,
    ExtractionError,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    Prompts,
    Provider,
    ReplyInvalid,
    ReplyModel,
    parse_reply,
    schema_of,
)

REASON: Final = "judging"
"""Purpose under which the ledger lists the calls of the judge."""
SECONDS: Final = 20.0
"""Timeout in seconds. It is short, because a caller waits to store a memory."""
_TOKENS_OUT: Final = 2_000
_CERTAINTY_MIN: Final = 0.6
"""Minimum certainty of an accepted judgement, as stated by the model."""
_PAUSE: Final = 60.0
"""Seconds without calls after a temporary failure."""
_SHOWN_MAX, _REASON_MAX = 2_000, 200
"""Maximum characters of a memory in the request, and of a reason in the result."""
_CACHE_MAX: Final = 1_000
"""Maximum number of cached judgements."""


class _Judged(ReplyModel):
    pair: int
    verdict: Literal["contradicts", "supersedes", "compatible"]
    reason: str
    certainty: float


class _Judgements(ReplyModel):
    judgements: list[_Judged]


class ModelJudge:
    """Judge that applies the rules first, and keeps their verdict if the model does not answer.

    The model is never asked whether two memories are the same. A wrong answer would prevent a memory from being stored.
    """

    def __init__(self, store: Store, config: Config, prompts: Prompts, provider: Callable[[], Provider]) -> None:
        """Create a judge. `provider` is a function that opens the provider before the first request.

        Raises:
            ConfigInvalid: The price of the model is unknown.
        """
        self._rules = RuleJudge()
        self.name = f"{self._rules.name} and {config.llm_name}"
        self._store, self._model, self._open = store, config.llm_name, provider
        _, self._system, self._fill = prompts
        self._calls = BookedCalls(store, config, REASON)
        self._private = config.private_projects
        self._provider: Provider | None = None
        self._paused_until = 0.0
        self._cache: dict[str, Judgement | None] = {}

    def judge_all(self, pairs: Sequence[MemoryPair]) -> list[Judgement]:
        """Judge all pairs with at most one call of the model.

        The last 1,000 pairs are cached, including pairs without a usable reply, which keep the judgement of the rules.
        """
        judged, private = self._rules.judge_all(pairs), PrivateProjects(self._store, self._private)
        asked = {
            index: _key(pair)
            for index, (pair, judgement) in enumerate(zip(pairs, judged, strict=True))
            if judgement.unsure and not any(map(private.includes_memory, pair))
        }
        unknown = {key: pairs[index] for index, key in asked.items() if key not in self._cache}
        if unknown and time.monotonic() >= self._paused_until:
            self._ask(unknown)
        return [self._cache.get(asked.get(index, "")) or judgement for index, judgement in enumerate(judged)]

    def close(self) -> None:
        """Close the provider if it was opened."""
        if self._provider is not None:
            self._provider.close()
            self._provider = None

    def _ask(self, pairs: Mapping[str, MemoryPair]) -> None:
        """Ask the model about these pairs and cache its judgements by key."""
        request = self._request(pairs)
        try:
            answer = self._call(request)
            self._keep(list(pairs), parse_reply(answer.text, _Judgements, answer.raw))
        except ReplyInvalid:
            self._keep(list(pairs), _Judgements(judgements=[]))
        except ModelRefused:
            self._paused_until = float("inf")
        except ModelBusy as error:
            self._paused_until = time.monotonic() + max(_PAUSE, error.after or 0)
        except (BudgetExhausted, ExtractionError):
            return

    def _call(self, request: ModelRequest) -> Answer:
        planned = CallSize(request.size(), _TOKENS_OUT, _digest(request))
        return self._calls.make(planned, lambda: self._connected().ask(request))

    def _connected(self) -> Provider:
        if self._provider is None:
            self._provider = self._open()
        return self._provider

    def _keep(self, keys: Sequence[str], reply: _Judgements) -> None:
        """Cache the judgements of the pairs with these keys, and None for pairs without a usable judgement."""
        self._cache |= dict.fromkeys(keys)
        for answer in reply.judgements:
            if 1 <= answer.pair <= len(keys) and _CERTAINTY_MIN <= answer.certainty <= 1:
                reason = " ".join(readable(answer.reason).split())[:_REASON_MAX] or "No reason given"
                self._cache[keys[answer.pair - 1]] = Judgement(Verdict(answer.verdict), reason, self._model)
        for key in list(self._cache)[:-_CACHE_MAX]:
            del self._cache[key]

    def _request(self, pairs: Mapping[str, MemoryPair]) -> ModelRequest:
        texts = [(older.content[:_SHOWN_MAX], newer.content[:_SHOWN_MAX]) for older, newer in pairs.values()]
        nonce = sha256(orjson.dumps(list(pairs))).hexdigest()[:16]
        text = self._fill(pairs=texts, nonce=nonce)
        return ModelRequest(self._model, _TOKENS_OUT, self._system, text, schema_of(_Judgements))


def _key(pair: MemoryPair) -> str:
    return "".join(memory.content_hash for memory in pair)


def _digest(request: ModelRequest) -> str:
    return sha256(json.encode(request)).hexdigest()
