"""The judge that asks a language model, about those pairs alone of which rules can tell no more than their subject."""

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, Protocol
from uuid import uuid4

import orjson
from pydantic import ValidationError

from ...archiver.store import Planned, Store
from ...core.config import Config
from ...core.text import readable
from ..memory import Judgement, OfflineJudge, Pair, Verdict
from .errors import BudgetExhausted, ExtractionError, ModelBusy, ModelRefused, ReplyInvalid
from .ledger import Budget, Ledger
from .messages import Closed, body, may_be_charged, parsed
from .prices import price_of
from .privacy import Privacy
from .provider import Answer, Provider

REASON: Final = "judging"
"""What the ledger says that a call was for."""
SECONDS: Final = 20.0
"""Longest wait for an answer: somebody is storing a memory meanwhile."""
_TOKENS_OUT: Final = 2_000
_SURE_FROM: Final = 0.6
"""From which certainty of its own on the model is believed."""
_REST: Final = 60.0
"""Seconds in which a provider that did not answer is not asked again."""
_SHOWN_MAX, _REASON_MAX = 2_000, 200
"""Characters of a memory that are shown, and of a reason that are kept."""
_KNOWN_MAX: Final = 1_000


class JudgingPrompts(Protocol):
    """The words around the pairs."""

    def system(self) -> str:
        """What the model is told each time."""
        ...

    def request(self, pairs: Sequence[tuple[str, str]], nonce: str) -> str:
        """What the older and the newer of each pair say, as quoted data between fences named by `nonce`."""
        ...


class _Judged(Closed):
    pair: int
    verdict: Literal["contradicts", "supersedes", "compatible"]
    reason: str
    certainty: float


class _Reply(Closed):
    judgements: list[_Judged]


class ModelJudge:
    """Judges by rules first. Whatever keeps the model from answering, the rules' judgement stands, and says so.

    A model never says that two memories are the same: that would keep one of them from being held.
    """

    def __init__(self, store: Store, config: Config, prompts: JudgingPrompts, provider: Callable[[], Provider]) -> None:
        """`provider` is called when the first pair is about to be sent. Raises `ConfigInvalid` where its price is not
        known.
        """
        self._rules = OfflineJudge()
        self.name = f"{self._rules.name} and {config.llm_model}"
        self._store, self._model, self._prompts, self._open = store, config.llm_model, prompts, provider
        self._price = price_of(config.llm_model, config.llm_price)
        self._ledger = Ledger(store, Budget.of(config), uuid4().hex)
        self._private = config.private_projects
        self._provider: Provider | None = None
        self._rests_until = 0.0
        self._known: dict[str, Judgement | None] = {}

    def judge_all(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """How the newer of each pair stands to the older. One call for all that is asked.

        Of the last 1,000 pairs none is asked twice once a call was answered, also where the model left it out, was not
        sure of it, or could not be understood: the rules' judgement stands then.
        """
        judged, privacy = self._rules.judge_all(pairs), Privacy(self._store, self._private)
        asked = {
            place: _key(pair)
            for place, (pair, judgement) in enumerate(zip(pairs, judged, strict=True))
            if judgement.unsure and not any(map(privacy.covers_memory, pair))
        }
        unknown = {key: pairs[place] for place, key in asked.items() if key not in self._known}
        if unknown and time.monotonic() >= self._rests_until:
            self._ask(unknown)
        return [self._known.get(asked.get(place, "")) or judgement for place, judgement in enumerate(judged)]

    def close(self) -> None:
        """Let go of the provider, where one was asked."""
        if self._provider is not None:
            self._provider.close()
            self._provider = None

    def _ask(self, pairs: Mapping[str, Pair]) -> None:
        """Keep what the model says of these pairs, given by their keys."""
        params = self._params(pairs)
        size = len(orjson.dumps(params))
        planned = Planned(self._model, REASON, 0, _digest(params), self._price.at_most(size, _TOKENS_OUT))
        try:
            with self._store.transaction():
                call = self._ledger.reserve(planned)
            self._keep(list(pairs), _read(self._answered(call, params)))
        except ReplyInvalid:
            self._keep(list(pairs), _Reply(judgements=[]))
        except ModelRefused:
            self._rests_until = float("inf")
        except ModelBusy as error:
            self._rests_until = time.monotonic() + max(_REST, error.after or 0)
        except (BudgetExhausted, ExtractionError):
            return

    def _answered(self, call: int, params: Mapping[str, Any]) -> Answer:
        """One call, with its price in the ledger. A call that may have been worked on stays reserved."""
        try:
            if self._provider is None:
                self._provider = self._open()
            answer = self._provider.ask(params)
        except ExtractionError as error:
            if not may_be_charged(error):
                with self._store.transaction():
                    self._store.ledger.release([call])
            raise
        with self._store.transaction():
            self._store.ledger.settle(call, answer.usage, self._price.cost(answer.usage))
        return answer

    def _keep(self, keys: Sequence[str], reply: _Reply) -> None:
        """Keep what was judged of the pairs with these keys; None where that was nothing to go by."""
        self._known |= dict.fromkeys(keys)
        for told in reply.judgements:
            if 1 <= told.pair <= len(keys) and _SURE_FROM <= told.certainty <= 1:
                reason = " ".join(readable(told.reason).split())[:_REASON_MAX] or "No reason was given"
                self._known[keys[told.pair - 1]] = Judgement(Verdict(told.verdict), reason, self._model)
        for key in list(self._known)[:-_KNOWN_MAX]:
            del self._known[key]

    def _params(self, pairs: Mapping[str, Pair]) -> dict[str, Any]:
        texts = [(older.content[:_SHOWN_MAX], newer.content[:_SHOWN_MAX]) for older, newer in pairs.values()]
        nonce = sha256(orjson.dumps(list(pairs))).hexdigest()[:16]
        text = self._prompts.request(texts, nonce)
        return body(self._model, _TOKENS_OUT, self._prompts.system(), text, _Reply)


def _read(answer: Answer) -> _Reply:
    """The judgements in an answer; raises `ReplyInvalid`."""
    try:
        return parsed(answer.text, _Reply)
    except ValidationError:
        raise ReplyInvalid("the judgement has another shape", answer.raw) from None


def _key(pair: Pair) -> str:
    return "".join(memory.content_hash for memory in pair)


def _digest(params: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(params)).hexdigest()
