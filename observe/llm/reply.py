"""What a model must answer, and how its answer is read."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ...core.errors import ReplyInvalid
from ...core.observation import ObservationType

TypeName = Literal[
    "decision", "bug-fix", "pattern", "feature", "refactor", "learning", "debug", "test", "config", "general"
]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fact(_Closed):
    """One thing that was learned, with the words that prove it and the line they stand on."""

    text: str
    line: int
    quote: str


class Learned(_Closed):
    """An observation as the model words it. Files, dates and trust are added by code."""

    type: TypeName
    title: str
    subtitle: str
    narrative: str
    facts: list[Fact]
    concepts: list[str]


class Reply(_Closed):
    """The whole answer. `nothing` is an answer too: nothing here is worth keeping."""

    verdict: Literal["learned", "nothing"]
    observations: list[Learned]


SCHEMA: dict[str, Any] = Reply.model_json_schema()
"""The JSON schema of an answer, derived from the types. It uses only what constrained decoding supports."""


def read(text: str) -> Reply:
    """The answer in a model's text; raises `ReplyInvalid`. Servers that do not constrain put fences around it."""
    start, end = text.find("{"), text.rfind("}")
    try:
        reply = Reply.model_validate_json(text[start : end + 1])
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
