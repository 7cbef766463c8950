"""Redaction of secrets and private spans in parsed transcripts, before the content is processed further.

Each secret is replaced by a placeholder with its kind and a tag. Equal secrets have the same tag.

Private text (`<private>…</private>`) is stored only in the raw copies. Tags in backquotes are ignored. In a user's
message, an unclosed span extends to the end. In other text, such as program output, only closed spans count. A user
can also request not to index a session or an exchange.
"""

import hmac
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import islice
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Note, Session, Speaker, Turn
from ...core.errors import InvalidNamespace
from ...core.memory import Memory, MemoryRevision
from ...core.text import readable, visible
from ...core.tokens import Memo
from ..lines import CUT, trim
from .scanner import Found, keyword_index, scan

PLACEHOLDER: Final = "[private]"

_TAG = re.compile(r"(?<!`)<(/?)private(?:[ \t][^<>]{0,100})?>(?!`)", re.IGNORECASE)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
_ASKED = r"(?:do\s+not|don['’]t)\s+index\s+this\s+"
_WHOLE = re.compile(
    rf"\b{_ASKED}(?:chat|conversation|session)\b|이 대화는 (?:인덱싱하지 마세요|검색에서 제외하세요)", re.IGNORECASE
)
_ONE = re.compile(rf"\b{_ASKED}(?:message|prompt|exchange)\b", re.IGNORECASE)


class Unindexed(StrEnum):
    """Reason why a line is not indexed, which is also the outcome of the line in `Source.coverage`."""

    SESSION = "unindexed-session"
    """The user excluded the whole session."""
    EXCHANGE = "unindexed-exchange"
    """The user excluded this exchange."""
    EXCLUDED = "excluded-folder"
    """The settings exclude the folder."""


def opt_out_in(prompt: str) -> Unindexed | None:
    """Return `SESSION` or `EXCHANGE` if a prompt asks not to index the session or the exchange, otherwise None.

    Requests in quotations and in code are ignored.
    """
    if "ndex" not in prompt and "NDEX" not in prompt and "이 대화는" not in prompt:
        return None
    plain = _QUOTED.sub("", prompt)
    if _WHOLE.search(plain):
        return Unindexed.SESSION
    return Unindexed.EXCHANGE if _ONE.search(plain) else None


def redact_typed(text: str, depth: int = 0) -> tuple[str, int]:
    """Replace the private spans in a user's message by `[private]`. Also return the number of spans open at its end.

    `depth` is the number of open spans before the message.
    """
    kept: list[str] = [PLACEHOLDER] if depth else []
    done = 0
    for tag in _TAG.finditer(text):
        if not depth:
            kept.append(text[done : tag.start()])
        if tag[1]:
            depth = max(0, depth - 1)
        else:
            kept += [] if depth else [PLACEHOLDER]
            depth += 1
        done = tag.end()
    if not depth:
        kept.append(text[done:])
    return "".join(kept), depth


def redact_printed(text: str) -> str:
    """Replace private spans with both tags by `[private]`, in text that the user did not type.

    If the middle of the text was cut out, one tag of a span can be missing. Then the text between the other tag and the
    cut is replaced.
    """
    head, _, rest = text.partition(CUT)
    number, _, tail = rest.partition(CUT)
    if not tail:
        return _without(text, _spans(text))
    head, tail = _without(head, _spans(head, clipped=True)), _without(tail, _spans(tail, depth=1))
    return f"{head}{CUT}{number}{CUT}{tail}"


def _spans(text: str, depth: int = 0, *, clipped: bool = False) -> list[tuple[int, int]]:
    """Return the start and end of each outermost private span. `depth` is the number of open spans before the text.

    If closing tags are missing, the last span ends at the last closing tag, or with `clipped` at the end of the text.
    """
    spans: list[tuple[int, int]] = []
    start = end = 0
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth, end = depth - 1, tag.end()
            if not depth:
                spans.append((start, end))
    if depth and (clipped or end > start):
        spans.append((start, len(text) if clipped else end))
    return spans


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    done = 0
    for start, end in spans:
        kept += (text[done:start], PLACEHOLDER)
        done = end
    return "".join((*kept, text[done:]))


PASSES = 8
"""Maximum number of passes over a text. Each pass searches the result of the previous pass.

If every pass finds new secrets, one placeholder replaces the whole text.
"""
KEY_BYTES = 16
_NAMES = 10_000
"""Maximum number of names, and of secrets, whose redacted form is cached."""

_NAMED = "assignment"
"""Kind of all secrets that are recognised only by their context, such as a name before the value.

The kind does not state the context, because equal secrets can have different contexts.
"""
_CONTEXT_KINDS = frozenset(
    {"authorization", "curl-auth-header", "curl-auth-user", "generic-api-key", "url-credentials"}
)
"""Kinds that describe the context of a secret, not its form. They are replaced by `assignment`."""

_SHORTEST, _LONGEST = 8, 512
"""Minimum and maximum length of a secret that is also redacted where no name, such as `password`, precedes it."""
_REPEATED = 32
"""Maximum number of different secrets in a text whose other occurrences are also redacted."""
_LETTER, _DIGIT = re.compile(rb"[A-Za-z]"), re.compile(rb"[0-9]")

_PLACEHOLDER = re.compile(rb"\[secret:([a-z0-9-]{1,64}):([0-9a-f]{6})\]")


_KEYS = orjson.OPT_NON_STR_KEYS


class FoundSecret(Struct, frozen=True):
    """Secret that was found: its kind, and a tag of six hexadecimal digits. Equal secrets have the same tag."""

    kind: str
    tag: str

    def __str__(self) -> str:
        """Return the placeholder, such as `[secret:github-pat:1a2b3c]`."""
        return f"[secret:{self.kind}:{self.tag}]"


def normal_form(text: str) -> str:
    """Return the text without characters that replies do not show. NUL is kept: it marks where a text was clipped."""
    if not keyword_index().has_unusual(text.encode(errors="surrogatepass")):
        return text
    return "\0".join(map(visible, text.split("\0")))


def placeholders_in(text: str) -> list[FoundSecret]:
    """Return the kind and the tag of each placeholder in a text, in order."""
    found = _PLACEHOLDER.finditer(text.encode(errors="replace"))
    return [FoundSecret(kind.decode(), tag.decode()) for kind, tag in (match.groups() for match in found)]


def secrets_of(memory: Memory) -> list[FoundSecret]:
    """Return the secrets that were redacted from a memory, one element for each occurrence."""
    texts = memory.content, memory.title, *memory.tags, orjson.dumps(memory.metadata, option=_KEYS).decode()
    return placeholders_in("\n".join((*texts, memory.project, memory.level, memory.source, memory.session_id)))


def kinds_of(memory: Memory) -> list[str]:
    """Return the kinds of secrets that were redacted from a memory, such as `github-pat`, the most frequent first."""
    return [kind for kind, _ in Counter(secret.kind for secret in secrets_of(memory)).most_common()]


class Redacted(Struct, frozen=True):
    """Text without secrets, and the secrets that were found in it."""

    text: str
    findings: tuple[FoundSecret, ...] = ()


class Redactor:
    """Redactor of secrets in texts.

    The tags in its placeholders are keyed hashes. Without the key, nobody can check whether a guessed secret is the
    redacted one.
    """

    def __init__(self, key: bytes) -> None:
        """Set the key: at least 16 random bytes, identical for the whole archive.

        Raises:
            ValueError: The key is too short.
        """
        if len(key) < KEY_BYTES:
            raise ValueError(f"The key has {len(key)} bytes; at least {KEY_BYTES} are required")
        self.key = key
        """Key of the placeholders."""
        self._names = Memo[str, str](_NAMES)
        self._tags = Memo[tuple[str, bytes], FoundSecret](_NAMES)

    def __reduce__(self) -> "tuple[type[Redactor], tuple[bytes]]":
        """Pickle the key only, without the cached names and tags."""
        return Redactor, (self.key,)

    def redact(self, text: str, *, keep_lines: bool = False) -> Redacted:
        """Return the normal form of a text, with a placeholder for each secret. Redacting the result changes nothing.

        With `keep_lines`, the line breaks of a secret follow its placeholder, so that later lines keep their numbers.
        """
        if self.is_plain(text):
            return Redacted(text)
        text = normal_form(text)
        # JSON may contain lone surrogates, which stay unchanged.
        data = text.encode(errors="surrogatepass")
        findings: list[FoundSecret] = []
        for _ in range(PASSES):
            found = find_secrets(data)
            if not found:
                break
            data = self._replace(data, found, findings, keep_lines=keep_lines)
        else:
            # Every pass revealed another secret.
            whole = FoundSecret("tangle", self._tag(data))
            breaks = "\n" * data.count(b"\n") if keep_lines else ""
            return Redacted(f"{whole}{breaks}", (*findings, whole))
        return Redacted(data.decode(errors="surrogatepass"), tuple(findings)) if findings else Redacted(text)

    def redact_name(self, text: str) -> str:
        """Redact a short text that occurs often, such as a project name. The result is cached."""
        return self._names.get_or_make(text, lambda name: self.redact(name).text)

    def is_plain(self, text: str) -> bool:
        """Return whether the text is in normal form and certainly contains no secret and no private span.

        The check is faster than `redact`. To check many texts at once, join them with line breaks.
        """
        return not keyword_index().has_any(text.encode(errors="surrogatepass"))

    def _replace(self, data: bytes, found: list[Found], findings: list[FoundSecret], *, keep_lines: bool) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for start, end, kind in found:
            finding = self._finding(kind, data[start:end])
            breaks = b"\n" * data.count(b"\n", start, end) if keep_lines else b""
            pieces += (data[done:start], str(finding).encode(), breaks)
            findings.append(finding)
            done = end
        return b"".join([*pieces, data[done:]])

    def _finding(self, kind: str, secret: bytes) -> FoundSecret:
        return self._tags.get_or_make((kind, secret), lambda found: FoundSecret(_kind(*found), self._tag(found[1])))

    def _tag(self, secret: bytes) -> str:
        return hmac.digest(self.key, secret, "sha256").hex()[:6]


def _kind(found: str, secret: bytes) -> str:
    """Return the kind of a secret. It depends only on the secret's form, so it is the same in every location."""
    match scan(secret):
        case [(0, end, kind)] if end == len(secret):
            shown = kind
        case _:
            shown = found
    return _NAMED if shown in _CONTEXT_KINDS else shown


def find_secrets(data: bytes) -> list[Found]:
    """Return the secrets in UTF-8 text, and all other occurrences of their values. Placeholders are skipped."""
    if b"[secret:" not in data:
        return _with_repetitions(data, scan(data))
    # No rule accepts NUL in a name or a secret.
    masked = _PLACEHOLDER.sub(lambda match: b"\0" * len(match[0]), data)
    outside = [found for found in scan(masked) if data[found[0] : found[1]] == masked[found[0] : found[1]]]
    return _with_repetitions(masked, outside)


def _with_repetitions(data: bytes, found: list[Found]) -> list[Found]:
    """Return the secrets and all other occurrences of their values, for example without `password=` before them."""
    kinds = {data[start:end]: kind for start, end, kind in found}
    # Short values may occur in other words, and each value costs time.
    values = [value for value in kinds if _SHORTEST <= len(value) <= _LONGEST and _is_mixed(value)][:_REPEATED]
    if not values:
        return found
    taken = sorted((start, end) for start, end, _ in found)
    again = re.compile(b"|".join(map(re.escape, sorted(values, key=len, reverse=True))))
    for match in again.finditer(data):
        at = bisect_left(taken, (match.end(),))
        if at == 0 or taken[at - 1][1] <= match.start():
            found.append((*match.span(), kinds[match[0]]))
    return sorted(found)


def _is_mixed(value: bytes) -> bool:
    return bool(_LETTER.search(value) and _DIGIT.search(value))


_TEXT_FIELDS: Final = ("content", "title", "project", "level", "source", "session_id")
"""Text fields of a memory that are redacted. A secret in a namespace is an error. A path is never changed."""

_Json: TypeAlias = str | Mapping[Any, Any] | tuple[Any, ...] | list[Any] | float | None


class MemoryRedactor:
    """Redactor that replaces each secret in a memory with a placeholder. Redacting again changes nothing."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def memory(self, memory: Memory) -> Memory:
        """Return the memory without secrets.

        Raises:
            InvalidNamespace: The namespace contains a secret.
        """
        return replace(memory, **self._fields(memory))

    def revision(self, revision: MemoryRevision) -> MemoryRevision:
        """Return the revision without secrets. Raises the errors of `memory`."""
        return replace(revision, **self._fields(revision))

    def text(self, text: str) -> str:
        """Return a text without secrets and invisible characters. Invalid bytes become U+FFFD."""
        return self._redactor.redact(visible(readable(text))).text

    def _fields(self, source: Memory | MemoryRevision) -> dict[str, Any]:
        if source.namespace and (clean := self.text(source.namespace)) != source.namespace:
            raise InvalidNamespace(clean)
        given = {name: getattr(source, name, None) for name in (*_TEXT_FIELDS, "tags", "metadata")}
        return {name: self._value(value) for name, value in given.items() if value is not None}

    def _value(self, value: _Json) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self._value(name): self._named_value(name, each) for name, each in value.items()}
            case tuple():
                return tuple(map(self._value, value))
            case list():
                return list(map(self._value, value))
            case _:
                return value

    def _named_value(self, name: object, value: Any) -> Any:
        """Return a value without secrets. After a key such as `password`, the whole value is a secret."""
        clean = self._value(value)
        if clean != value or not isinstance(value, str) or not isinstance(name, str):
            return clean
        found = self._redactor.redact(f'{name} = "{value}"').findings
        return str(found[0]) if found and not self._redactor.redact(name).findings else clean


_NAMES_TOGETHER, _TEXTS_TOGETHER = 256, 16
"""Number of turns whose names, or whose texts, are joined and checked at once. One large check is faster than many."""
_BETWEEN = "\n\0\n"
"""Separator between joined names. No rule matches across it."""
_REASON_LENGTH = 60
_NUMERIC = {Fact.USAGE, Fact.REWOUND}
"""Facts with numeric values, which contain no secrets."""


class TranscriptRedactor:
    """Redactor of secrets and private spans in transcripts.

    After redaction, it removes the margins that `clip` kept in shortened texts.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def exchanges(self, exchanges: Sequence[Exchange], known: AbstractSet[str] = frozenset()) -> list[Exchange]:
        """Redact exchanges.

        `known` contains names, such as record IDs, that were already checked and contain no secret.
        """
        turns = iter(self._turns([turn for exchange in exchanges for turn in exchange.turns], known))
        return [
            replace(
                each,
                turns=tuple(islice(turns, len(each.turns))),
                cwd=self.name(each.cwd),
                branch=self.name(each.branch),
            )
            for each in exchanges
        ]

    def notes(self, notes: Sequence[Note]) -> list[Note]:
        """Redact the values of notes."""
        return [
            note if note.fact in _NUMERIC else replace(note, value=self.name(note.value), about=self.name(note.about))
            for note in notes
        ]

    def session(self, session: Session) -> Session:
        """Redact the IDs, names and titles of a session."""
        return replace(
            session,
            native_id=self.name(session.native_id),
            parent_id=self.name(session.parent_id),
            scope=self.name(session.scope),
            project=self.name(session.project),
            cwd=self.name(session.cwd),
            branch=self.name(session.branch),
            title=self.name(session.title),
            version=self.name(session.version),
        )

    def records(self, records: dict[str, int]) -> dict[str, int]:
        """Redact record IDs, because an agent may derive an ID from any text. `records` maps each ID to its line."""
        if not self._has_secret(_BETWEEN.join(records)):
            return records
        return {self.name(record): line for record, line in records.items()}

    def outcomes(self, outcomes: Sequence[str]) -> list[str]:
        """Redact the outcomes of lines. An outcome such as `unknown-type:<type>` quotes the transcript."""
        redacted = {outcome: self.name(outcome)[:_REASON_LENGTH] for outcome in set(outcomes)}
        return [redacted[outcome] for outcome in outcomes]

    def name(self, text: str) -> str:
        """Redact a short text, such as a name, a title or a folder. Results are cached."""
        plain = normal_form(text)
        return self._redactor.redact_name(redact_typed(plain)[0] if "<" in plain else plain)

    def _turns(self, turns: Sequence[Turn], known: AbstractSet[str]) -> Iterator[Turn]:
        named: list[Turn] = []
        for batch in _batches(turns, _NAMES_TOGETHER):
            names = _names(batch) - known
            named += map(self._redact_names, batch) if self._has_secret(_BETWEEN.join(names)) else batch
        return self._redact_texts(named)

    def _has_secret(self, names: str) -> bool:
        return bool(self._redactor.redact(names).findings)

    def _redact_names(self, turn: Turn) -> Turn:
        tool, call, record, group = map(self.name, (turn.tool, turn.call, turn.record, turn.group))
        reads, writes = tuple(map(self.name, turn.reads)), tuple(map(self.name, turn.writes))
        return turn._replace(tool=tool, call=call, record=record, group=group, reads=reads, writes=writes)

    def _redact_texts(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        message = depth = 0
        for batch in _batches(turns, _TEXTS_TOGETHER):
            together = "\n".join([turn.text for turn in batch])
            plain = self._redactor.is_plain(together)
            if plain and not depth and CUT not in together:
                yield from batch
                continue
            for turn in batch:
                depth = depth if turn.line == message else 0
                text = turn.text
                if depth or not (plain or self._redactor.is_plain(text)):
                    text, depth = _without_private(turn.speaker, normal_form(text), depth)
                    text = self._redactor.redact(text).text
                    message = turn.line
                if CUT in text:
                    text = trim(text)
                yield turn if text is turn.text else turn._replace(text=text)


def _batches(turns: Sequence[Turn], size: int) -> Iterator[Sequence[Turn]]:
    return (turns[start : start + size] for start in range(0, len(turns), size))


def _names(turns: Sequence[Turn]) -> set[str]:
    names = {turn.record for turn in turns} | {turn.group for turn in turns}
    names |= {turn.tool for turn in turns} | {turn.call for turn in turns}
    for turn in turns:
        if turn.reads or turn.writes:
            names.update(turn.reads, turn.writes)
    return names


def _without_private(speaker: Speaker, text: str, depth: int) -> tuple[str, int]:
    """Return a text without private spans, and the number of open spans after it.

    `depth` is the number of open spans before it.
    """
    if not depth and "private" not in text.lower():
        return text, 0
    if speaker is Speaker.HUMAN:
        return redact_typed(text, depth)
    return redact_printed(text), depth
