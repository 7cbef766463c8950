"""Trial call: the real prompt about a tiny made-up session, with the real check of the reply."""

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...archiver.store import Store, StoredExchange
from ...core.config import Config
from ...core.conversation import Exchange, Kind, Span, Speaker, Turn
from .configured_model import provider_of
from .extraction_request import RequestBuilder, shorten_session
from .ledger import BookedCalls
from .provider import ReplyInvalid
from .session_cards import SessionReply, SessionVerifier

if TYPE_CHECKING:
    from ...templates.render import ExtractionPrompts

_TURNS: Final = (
    Turn(1, Speaker.HUMAN, Kind.PROMPT, "Why does the nightly export write two files? Repair it."),
    Turn(
        2,
        Speaker.ASSISTANT,
        Kind.PROSE,
        "The timer starts the export in both time zones, so it ran twice. I set the timer to UTC. "
        "Old double files are still in the folder.",
    ),
)
_SESSION: Final = StoredExchange(0, 0, 0, Exchange(0, Span(1, 2, 0, 0), _TURNS, None, None))


class Trial(Struct, frozen=True):
    """Result of a trial call. `problem` is empty if the reply gave a card with `facts` proven facts."""

    seconds: float
    tokens_out: int
    title: str = ""
    facts: int = 0
    problem: str = ""


def try_model(store: Store, config: Config, templates: "ExtractionPrompts") -> Trial:
    """Make one call with these settings.

    Raises:
        ExtractionError: The model gave no reply.
        BudgetExhausted: The budgets do not allow the call.
    """
    requests = RequestBuilder(templates.of_sessions, config.llm_name, SessionReply)
    request, start = requests.build(0, shorten_session([_SESSION.exchange])), time.monotonic()
    provider = provider_of(config)()
    try:
        answer = BookedCalls(store, config, "trial").make(request.size, lambda: provider.ask(request.question))
        seconds = time.monotonic() - start
        verified = SessionVerifier([_SESSION], request.excerpt, "", "").verify(answer.text, answer.raw)
    except ReplyInvalid as error:
        return Trial(time.monotonic() - start, 0, problem=str(error))
    finally:
        provider.close()
    if verified is None:
        return Trial(seconds, answer.usage.tokens_out, problem="the model found nothing to keep")
    return Trial(seconds, answer.usage.tokens_out, verified.card.name, len(verified.card.facts))
