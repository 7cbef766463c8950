"""What a model must answer, and how its answer is read."""

from typing import Literal

from pydantic import ValidationError

from ...core.observation import ObservationType
from .errors import ReplyInvalid
from .messages import Closed, parsed

TypeName = Literal[
    "decision", "bug-fix", "pattern", "feature", "refactor", "learning", "debug", "test", "config", "general"
]


class Fact(Closed):
    """One thing that was learned, with the words that prove it and the line they stand on."""

    text: str
    line: int
    quote: str


class Learned(Closed):
    """An observation as the model words it. Files, dates and trust are added by code."""

    type: TypeName
    title: str
    subtitle: str
    narrative: str
    facts: list[Fact]
    concepts: list[str]


class Reply(Closed):
    """The whole answer. `nothing` is an answer too: nothing here is worth keeping."""

    verdict: Literal["learned", "nothing"]
    observations: list[Learned]


def read(text: str) -> Reply:
    """The answer in a model's text; raises `ReplyInvalid`."""
    try:
        reply = parsed(text, Reply)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ReplyInvalid(f"the reply has another shape: {place or 'JSON'}: {first['msg']}", text) from None
    if (reply.verdict == "nothing") != (not reply.observations):
        raise ReplyInvalid(f"the reply says {reply.verdict} and has {len(reply.observations)} observations", text)
    return reply


def kind_of(learned: Learned) -> ObservationType:
    """The observation's type."""
    return ObservationType(learned.type)
