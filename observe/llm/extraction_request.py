"""Extraction requests: the excerpt of a session or exchange for a language model, and verification of its reply.

An exchange is shown as prompts, answers, one line per tool call, and the errors of failed calls. A session is shown
as prompts, the last answer to each, and recaps by the agent's program. Leaving out the output of successful calls
saves nine tenths of the tokens. It also keeps text of web pages and programs away from the model.

A fact of the reply is kept if its quote and all its names, numbers and paths occur in the conversation. Other facts are
dropped and counted, and so is a title with such a name, which the first proven fact replaces. Palaver, not the model,
sets files, dates and origin. The limits of size apply to titles and texts only, not to quotes and paths.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import StoredExchange
from ...core.conversation import Exchange, Kind, Origin, Speaker, Turn, least
from ...core.observation import Evidence, Observation, ObservationType
from ...core.text import TITLE_MAX, headline, truncate, visible
from ..rules.exchange_analysis import find_quote, includes_external
from .grounding import SourceText
from .ledger import CallSize
from .provider import ModelRequest, Prompts, ReplyInvalid, ReplyModel, bounded, parse_reply, schema_of

ERROR: Final = "error"
"""Speaker label of the output of a failed tool call."""
EXCERPT_CHARS: Final = 24_000
"""Maximum length of an excerpt, far below 100,000 tokens, where some models become more expensive."""
SESSION_CHARS: Final = 48_000
"""Maximum length of the excerpt of a session."""
_PASSAGE_CHARS: Final = {"human": 6_000, "task": 6_000, "assistant": 3_000, "call": 160, ERROR: 800}
"""Maximum length of a passage of each speaker."""
_BEFORE_CHARS: Final = 1_200
"""Maximum length of the answer before the prompt of an exchange."""
_SESSION_PASSAGE_CHARS: Final = (2_400, 1_200, 600, 300)
"""Maximum lengths of a passage of a session. The first length with which the session fits is used."""
_MIN_CHARS: Final = 200
"""Minimum characters of an exchange that is sent to the model. An exchange that changed files is always sent."""
_QUOTE_MIN: Final = 8
_QUOTE_MAX: Final = 240
_OBSERVATIONS_MAX, _FACTS_MAX, _CONCEPTS_MAX = 4, 8, 8
FACT_MAX: Final = 280
_SUBTITLE, _NARRATIVE, _CONCEPT = 160, 900, 40
"""Maximum characters of each field."""
_ORIGINS: Final = {"human": Origin.HUMAN, ERROR: Origin.TOOL}
"""Origin of quotes by speaker. All other text counts as the assistant's."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
if TYPE_CHECKING:
    TypeName = str
else:
    TypeName = Literal[tuple(map(str, ObservationType))]
ItemT = TypeVar("ItemT")
TOKENS_OUT: Final = 1_600
"""Maximum tokens of a reply, with the model's thinking. A card with five findings needs about 1,500."""
_SHORTEST: Final = 500
"""Maximum tokens of the reply about the shortest excerpt. A reply may be longer than the excerpt by so much."""
_CHARS: Final = 4
"""Typical characters of a token."""


class Passage(Struct, frozen=True):
    """Text of one turn, shortened for the model. Quotes are verified in the original `turn`."""

    line: int
    voice: str
    text: str
    turn: Turn


class Excerpt(Struct, frozen=True):
    """Excerpt of an exchange: its passages in order.

    `left_out` passages are omitted before the passage with index `gap`. `root` is the folder of the session with a
    slash, which is omitted from the paths in the passages.
    """

    passages: tuple[Passage, ...]
    gap: int = 0
    left_out: int = 0
    root: str = ""


def shorten(exchange: Exchange, folder: str = "") -> Excerpt:
    """Return the excerpt of an exchange. A long exchange is shortened to its beginning and its end.

    Paths in `folder` are shown relative to it.
    """
    root = _root(folder)
    return _fit(tuple(_passages(exchange, root)), EXCERPT_CHARS, root)


def last_answer(exchange: Exchange) -> str:
    """Return the last text of the assistant in an exchange, shortened, or an empty text."""
    answers = [turn for turn in exchange.active_turns if _voice(turn) == "assistant"]
    return _truncate(visible(answers[-1].text).strip(), _BEFORE_CHARS) if answers else ""


def shorten_session(exchanges: Sequence[Exchange], folder: str = "") -> Excerpt:
    """Return the excerpt of a session. Paths in `folder` are shown relative to it.

    A long session has shorter passages, and a very long one is cut in the middle.
    """
    root = _root(folder)
    every = tuple(passage for exchange in exchanges for passage in _session_passages(exchange, root))
    for chars in _SESSION_PASSAGE_CHARS:
        every = tuple(
            Passage(passage.line, passage.voice, _truncate(passage.text, chars), passage.turn) for passage in every
        )
        if sum(len(passage.text) for passage in every) <= SESSION_CHARS:
            break
    return _fit(every, SESSION_CHARS, root)


def is_worth_asking(exchange: Exchange, excerpt: Excerpt) -> bool:
    """Return whether an exchange is sent to the model: it changed files, or is longer than a status message."""
    chars = sum(len(passage.text) for passage in excerpt.passages if passage.voice not in {"call", ERROR})
    return bool(exchange.writes) or chars >= _MIN_CHARS


def _passages(exchange: Exchange, root: str) -> Iterator[Passage]:
    turns = exchange.active_turns
    failed = {turn.call for turn in turns if turn.kind is Kind.RESULT and turn.failed and turn.call}
    for turn in turns:
        voice = _voice(turn)
        if not voice:
            continue
        text = _shown(turn, root)
        if voice == "call":
            text = " ".join(text.split())
        text = _truncate(text, _PASSAGE_CHARS[voice])
        if turn.call in failed and voice == "call":
            text += " [failed]"
        if text:
            yield Passage(turn.line, voice, text, turn)


def _session_passages(exchange: Exchange, root: str) -> Iterator[Passage]:
    turns = exchange.active_turns
    answers = [turn for turn in turns if _voice(turn) == "assistant"]
    for turn in turns:
        recap = turn.kind in {Kind.COMPACTION, Kind.RECAP}
        is_last_answer = bool(answers) and (turn is answers[-1] or bool(turn.group and turn.group == answers[-1].group))
        voice = "recap" if recap else _voice(turn)
        if recap or voice in {"human", "task"} or (voice == "assistant" and is_last_answer):
            text = _shown(turn, root)
            if text:
                yield Passage(turn.line, voice, text, turn)


def _shown(turn: Turn, root: str) -> str:
    text = visible(turn.text).strip()
    return text.replace(root, "") if root else text


def _root(folder: str) -> str:
    """Return a folder with a slash at its end, or an empty text for no folder and for the root of all files."""
    return f"{folder.rstrip('/')}/" if folder.strip("/") else ""


def _fit(every: tuple[Passage, ...], chars: int, root: str) -> Excerpt:
    """Return the passages if they fit into a number of characters. Otherwise omit passages in the middle."""
    if sum(len(passage.text) for passage in every) <= chars:
        return Excerpt(every, root=root)
    head = _count_fitting(every, chars // 3)
    tail = _count_fitting(every[: head - 1 if head else None : -1], chars - chars // 3)
    return Excerpt(every[:head] + every[len(every) - tail :], head, len(every) - head - tail, root)


def _voice(turn: Turn) -> str:
    """Return the speaker label for the model, or an empty string for an omitted turn.

    The user's answer to a tool's question is a tool result, but has the label of the user.
    """
    match turn.kind, turn.speaker:
        case (Kind.PROMPT, Speaker.HUMAN) | (Kind.RESULT, Speaker.HUMAN):
            return "human"
        case (Kind.PROMPT, _):
            return "task"
        case (Kind.PROSE, Speaker.ASSISTANT):
            return "assistant"
        case (Kind.CALL, _):
            return "call"
        case (Kind.RESULT, _) if turn.failed:
            return ERROR
        case _:
            return ""


def _truncate(text: str, chars: int) -> str:
    """Return the beginning and the end of a text, which usually contain the question and the conclusion."""
    if len(text) <= chars:
        return text
    end = chars // 3
    return f"{text[: chars - end]} … {text[-end:]}"


def _count_fitting(passages: tuple[Passage, ...], chars: int) -> int:
    """Return the number of leading passages that fit into a number of characters."""
    for count, passage in enumerate(passages):
        chars -= len(passage.text)
        if chars < 0:
            return count
    return len(passages)


class ReplyFact(ReplyModel):
    """Fact with the quote that proves it and the line of the quote."""

    text: str = bounded(maxLength=FACT_MAX)
    line: int
    quote: str = bounded(maxLength=_QUOTE_MAX)


FactT = TypeVar("FactT", bound=ReplyFact)


class ReplyObservation(ReplyModel):
    """Observation as the model's reply states it."""

    type: TypeName
    title: str
    subtitle: str
    narrative: str
    facts: list[ReplyFact]
    concepts: list[str]


class Reply(ReplyModel):
    """Complete reply. The verdict `nothing` means that the exchange contains nothing to learn."""

    verdict: Literal["learned", "nothing"]
    observations: list[ReplyObservation]


class VerifiedReply(Struct, frozen=True):
    """Observations with valid evidence, the number of facts and titles without it, and that of texts that were cut."""

    observations: tuple[Observation, ...]
    rejected: int = 0
    cut: int = 0


class ReplyVerifier:
    """Verifier of the facts, titles and texts in one reply, which also applies the limits of size.

    `rejected` counts facts and titles without evidence, and `cut` what was left out or shortened.

    Args:
        exchanges: Exchanges that the model has read, in order.
        excerpt: Text that the model has read.
        extractor: Name of the extractor of the observations.
    """

    def __init__(self, exchanges: Sequence[Exchange], excerpt: Excerpt, extractor: str) -> None:
        self._excerpt, self._extractor = excerpt, extractor
        self._external = any(map(includes_external, exchanges))
        self._source = SourceText(
            (
                *(passage.turn.text for passage in excerpt.passages),
                *(path for exchange in exchanges for path in (*exchange.reads, *exchange.writes)),
            )
        )
        self.rejected = self.cut = 0

    def first(self, items: Sequence[ItemT], most: int) -> Sequence[ItemT]:
        """Return the first items."""
        self.cut += max(0, len(items) - most)
        return items[:most]

    def prove(self, facts: Sequence[FactT], most: int) -> list[tuple[FactT, Evidence]]:
        """Return the first facts whose quote and names occur in the source, each with its evidence."""
        facts = self.first(facts, most)
        named = [fact for fact in facts if self._source.contains_names_of(fact.text)]
        proofs = [(fact, _find_evidence(fact, self._excerpt)) for fact in named]
        proven = [(fact, evidence) for fact, evidence in proofs if evidence is not None]
        self.rejected += len(facts) - len(proven)
        return proven

    def title(self, text: str, proven: Sequence[tuple[ReplyFact, Evidence]]) -> str:
        """Return a whole title of at most 90 characters.

        The first proven fact replaces an empty title, and a title with a name that the source lacks.
        """
        if not (text.strip() and self._source.contains_names_of(text)):
            self.rejected += 1
            text = proven[0][0].text.strip().removesuffix(".")
        plain = self.text(text, len(text))
        if len(plain) <= TITLE_MAX:
            return plain
        self.cut += 1
        return headline(plain) or truncate(plain, TITLE_MAX)

    def text(self, text: str, most: int = FACT_MAX) -> str:
        """Return a text as a single line with relative paths, shortened at the end of a sentence or clause."""
        plain = one_line(text)
        plain = plain.replace(self._excerpt.root, "") if self._excerpt.root else plain
        self.cut += len(plain) > most
        return truncate(plain, most)

    def sentences(self, text: str, most: int) -> str:
        """Return the sentences of a text that contain only names from the source."""
        kept = (sentence for sentence in _SENTENCE_END.split(text) if self._source.contains_names_of(sentence))
        return self.text(" ".join(kept), most)

    def concepts(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the first words that occur in the source, in lower case."""
        named = [word for word in words if self._source.contains_names_of(word)]
        return tuple(dict.fromkeys(self.text(word.lower(), _CONCEPT) for word in named[:_CONCEPTS_MAX]))

    def observation(
        self, kind: ObservationType, title: str, proven: Sequence[tuple[ReplyFact, Evidence]], exchange: Exchange
    ) -> Observation:
        """Return the observation of an exchange with proven facts. Palaver sets files, date and origin."""
        evidence = tuple(proof for _, proof in proven)
        title = self.title(title, proven)
        sentences = [title, *(fact.text for fact, _ in proven)]
        return Observation(
            type=kind,
            title=title,
            facts=tuple(self.text(fact.text) for fact, _ in proven),
            files_read=exchange.reads,
            files_modified=exchange.writes,
            evidence=evidence,
            at=exchange.ended or exchange.started,
            origin=Origin.EXTERNAL if self._external else origin_of(sentences, evidence, self._excerpt),
            extractor=self._extractor,
        )


def verify_reply(text: str, stored: StoredExchange, excerpt: Excerpt, extractor: str, raw: str) -> VerifiedReply:
    """Return the observations of a reply that have at least one proven fact.

    Raises:
        ReplyInvalid: The reply has no valid structure, or it has observations, but none of them is proven.
    """
    reply, verifier = parse_reply(text, Reply, raw), ReplyVerifier([stored.exchange], excerpt, extractor)
    if (reply.verdict == "nothing") != (not reply.observations):
        number = len(reply.observations)
        raise ReplyInvalid(f"the verdict is `{reply.verdict}`, but the reply has {number} observations", raw)
    kept: list[Observation] = []
    for extracted in verifier.first(reply.observations, _OBSERVATIONS_MAX):
        if proven := verifier.prove(extracted.facts, _FACTS_MAX):
            observation = verifier.observation(
                ObservationType(extracted.type), extracted.title, proven, stored.exchange
            )
            kept.append(
                replace(
                    observation,
                    subtitle=verifier.sentences(extracted.subtitle, _SUBTITLE),
                    narrative=verifier.sentences(extracted.narrative, _NARRATIVE),
                    concepts=verifier.concepts(extracted.concepts),
                )
            )
    if reply.observations and not kept:
        raise ReplyInvalid(f"the conversation proves none of the {verifier.rejected} facts in the reply", raw)
    return VerifiedReply(tuple(dict.fromkeys(kept)), verifier.rejected, verifier.cut)


def origin_of(sentences: Sequence[str], evidence: Sequence[Evidence], excerpt: Excerpt) -> Origin:
    """Return the least trusted origin of all quotes.

    The origin is `human` only if all quotes are the user's words, and the quoted messages contain at least half of the
    longer words of each sentence. Without this rule, a harmless quote of the user could make injected text count as the
    user's words.
    """
    quoted = [
        next(
            passage
            for passage in excerpt.passages
            if passage.line == quote.start_line and quote.quote in passage.turn.text
        )
        for quote in evidence
    ]
    origins = {_ORIGINS.get(passage.voice, Origin.ASSISTANT) for passage in quoted}
    said = SourceText(passage.turn.text for passage in quoted)
    if origins == {Origin.HUMAN} and not all(map(said.shares_words_with, sentences)):
        return Origin.ASSISTANT
    return least(origins)


def _find_evidence(fact: ReplyFact, excerpt: Excerpt) -> Evidence | None:
    """Find the quote on its stated line, or else on the only line that contains it.

    Return the quote as written in the source, where paths are absolute.
    """
    quote = " ".join(fact.quote.split())[:_QUOTE_MAX]  # The beginning of a long quote proves the line as well.
    if not fact.text.strip() or len(quote) < _QUOTE_MIN:
        return None
    written = [(passage.line, passage.turn.text) for passage in excerpt.passages]
    if (evidence := find_quote(quote, fact.line, written)) is not None or not excerpt.root:
        return evidence
    relative = [(line, text.replace(excerpt.root, "")) for line, text in written if excerpt.root in text]
    if (evidence := find_quote(quote, fact.line, relative)) is None:
        return None
    for line, text in written:
        if line == evidence.start_line and (original := _with_root(evidence.quote, text, excerpt.root)):
            return replace(evidence, quote=original)
    return None


def _with_root(quote: str, text: str, root: str) -> str:
    """Return a quote from a text with relative paths as it stands in the text. Return an empty text if it does not."""
    start = text.replace(root, "").find(quote)
    if start < 0:
        return ""
    lengths = [len(piece) for piece in text.split(root)]
    places = list(accumulate(lengths[:-1]))
    """Positions in the text with relative paths at which the folder was removed."""
    end = start + len(quote)
    first = start + len(root) * sum(position <= start for position in places)
    return text[first : end + len(root) * sum(position < end for position in places)]


def one_line(text: str) -> str:
    """Return the text as a single line without invisible characters."""
    return " ".join(visible(text).split())


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
    """Builder of requests to one model with one set of prompts.

    `reply` is the structure of the replies. A reply has at most `TOKENS_OUT` tokens, and fewer for a short excerpt.
    `name` consists of the model and the version of the prompts. It is the end of the name of the extractor.
    """

    def __init__(self, prompts: Prompts, model: str, reply: type[ReplyModel]) -> None:
        self.version, self._system, self._fill = prompts
        self._model, self._reply, self.name = model, reply, f"{model}:{self.version}"

    def build(self, exchange: int, excerpt: Excerpt, known: Sequence[str] = (), before: str = "") -> ExtractionRequest:
        """Return the request about an excerpt. `known` are titles of earlier observations."""
        passages = orjson.dumps([(passage.line, passage.voice, passage.text) for passage in excerpt.passages])
        content = sha256(passages).hexdigest()
        # Authors of the transcript cannot know the digest of the whole text, so they cannot write a closing fence.
        text = self._fill(shown=excerpt, nonce=content[:16], known=known, before=before)
        question = ModelRequest(self._model, _tokens_out(excerpt), self._system, text, schema_of(self._reply))
        return ExtractionRequest(exchange, excerpt, sha256(f"{content}:{self.name}".encode()).hexdigest(), question)


def _tokens_out(excerpt: Excerpt) -> int:
    chars = sum(len(passage.text) for passage in excerpt.passages)
    return min(TOKENS_OUT, _SHORTEST + chars // _CHARS)
