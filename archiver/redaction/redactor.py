"""Redaction of secrets: each secret is replaced by a placeholder with its kind and a tag.

Equal secrets have the same tag.
"""

import hmac
import re
from bisect import bisect_left

from msgspec import Struct

from ...core.memo import Memo
from ...core.text import visible
from .scanner import Found, keyword_index, scan

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
