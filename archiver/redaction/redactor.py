"""Text without its secrets, each replaced by a placeholder that tells its kind and whether it is the same one again."""

import hmac
import re
from bisect import bisect_left

from msgspec import Struct

from ...core.memo import Memo
from .scanner import Found, scan, signs

PASSES = 8
"""A text that shows new secrets after so many is made to: it becomes one placeholder."""
KEY_BYTES = 16
_NAMES = 10_000
"""Names that are remembered with what is left of them."""

_NAMED = "assignment"
"""The kind of what only its surroundings give away: elsewhere they are others, and the secret is the same."""
_SURROUNDED = frozenset({"authorization", "curl-auth-header", "curl-auth-user", "generic-api-key", "url-credentials"})
"""Kinds of rules that tell surroundings, and nothing of the secret."""

_TELLING, _LONGEST = 8, 512
"""Characters of a secret that is taken out wherever it stands, name or not."""
_REPEATED = 32
"""At most so many different ones for each text."""
_LETTER, _DIGIT = re.compile(rb"[A-Za-z]"), re.compile(rb"[0-9]")

_PLACEHOLDER = re.compile(rb"\[secret:([a-z0-9-]{1,64}):([0-9a-f]{6})\]")


class Finding(Struct, frozen=True):
    """One secret: its kind, and a tag of six hexadecimal digits that equal secrets share."""

    kind: str
    tag: str

    def __str__(self) -> str:
        """What stands in the secret's place."""
        return f"[secret:{self.kind}:{self.tag}]"


def placed(text: str) -> list[Finding]:
    """The findings whose placeholders stand in a text, in order."""
    found = _PLACEHOLDER.finditer(text.encode(errors="replace"))
    return [Finding(kind.decode(), tag.decode()) for kind, tag in (match.groups() for match in found)]


class Redacted(Struct, frozen=True):
    """A text without secrets, and what was found in it."""

    text: str
    findings: tuple[Finding, ...] = ()


class Redactor:
    """Takes secrets out of texts. Without the key nobody can tell a secret from its tag or try guesses on it."""

    def __init__(self, key: bytes) -> None:
        """`key`: at least 16 random bytes, the same for a whole archive. Raises `ValueError` for fewer."""
        if len(key) < KEY_BYTES:
            raise ValueError(f"a key of {len(key)} bytes, {KEY_BYTES} needed")
        self._key = key
        self._names = Memo[str, str](_NAMES)
        self._tags = Memo[tuple[str, bytes], Finding](_NAMES)

    def redact(self, text: str) -> Redacted:
        """The text with a placeholder for each secret. Placeholders stay, so doing it again changes nothing."""
        # JSON may bring lone surrogates; they pass through unharmed.
        data = text.encode(errors="surrogatepass")
        findings: list[Finding] = []
        for _ in range(PASSES):
            found = _secrets(data)
            if not found:
                break
            data = self._replace(data, found, findings)
        else:
            # Taking one secret out lays the next one open, again and again.
            whole = Finding("tangle", self._tag(data))
            return Redacted(str(whole), (*findings, whole))
        return Redacted(data.decode(errors="surrogatepass"), tuple(findings)) if findings else Redacted(text)

    def redact_name(self, text: str) -> str:
        """What `redact` leaves of a short text that comes again and again."""
        return self._names.made(text, lambda told: self.redact(told).text)

    def is_plain(self, text: str) -> bool:
        """Whether there is nothing in the text to look for, neither a secret nor a private span.

        One quick look, which is also good for many texts put together.
        """
        return not signs().shown(text.encode(errors="surrogatepass"))

    def spans(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Where the secrets of a text in UTF-8 stand, and the placeholder of each."""
        return [(start, end, str(self._finding(kind, data[start:end])).encode()) for start, end, kind in _secrets(data)]

    def _replace(self, data: bytes, found: list[Found], findings: list[Finding]) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for start, end, kind in found:
            finding = self._finding(kind, data[start:end])
            pieces += (data[done:start], str(finding).encode())
            findings.append(finding)
            done = end
        return b"".join([*pieces, data[done:]])

    def _finding(self, kind: str, secret: bytes) -> Finding:
        return self._tags.made((kind, secret), lambda told: Finding(_kind(*told), self._tag(told[1])))

    def _tag(self, secret: bytes) -> str:
        return hmac.digest(self._key, secret, "sha256").hex()[:6]


def _kind(found: str, secret: bytes) -> str:
    """What a secret is called wherever it stands: as it shows itself, whatever it was found by."""
    match scan(secret):
        case [(0, end, kind)] if end == len(secret):
            shown = kind
        case _:
            shown = found
    return _NAMED if shown in _SURROUNDED else shown


def _secrets(data: bytes) -> list[Found]:
    """What `scan` finds outside placeholders, and wherever else the same values stand."""
    if b"[secret:" not in data:
        return _everywhere(data, scan(data))
    # NUL, because no rule takes it for part of a name or a secret.
    masked = _PLACEHOLDER.sub(lambda match: b"\0" * len(match[0]), data)
    outside = [found for found in scan(masked) if data[found[0] : found[1]] == masked[found[0] : found[1]]]
    return _everywhere(masked, outside)


def _everywhere(data: bytes, found: list[Found]) -> list[Found]:
    """The finds, and the same values where no name tells of them: `password=…` first, the bare value later."""
    told = {data[start:end]: kind for start, end, kind in found}
    # A short one could be a part of anything, and each one is another walk through the text.
    values = [value for value in told if _TELLING <= len(value) <= _LONGEST and _is_mixed(value)][:_REPEATED]
    if not values:
        return found
    taken = sorted((start, end) for start, end, _ in found)
    again = re.compile(b"|".join(map(re.escape, sorted(values, key=len, reverse=True))))
    for match in again.finditer(data):
        at = bisect_left(taken, (match.end(),))
        if at == 0 or taken[at - 1][1] <= match.start():
            found.append((*match.span(), told[match[0]]))
    return sorted(found)


def _is_mixed(value: bytes) -> bool:
    return bool(_LETTER.search(value) and _DIGIT.search(value))
