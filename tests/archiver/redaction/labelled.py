"""Secrets and similar texts of the folder `labelled`, with values that are generated while the tests run.

A line is `kind | text`. In the text, `⏎` is a line break, `⇥` a tab and `⟦…⟧` a secret. `‹alphabet length›` stands for
as many random characters. `FIELDS` names the alphabets and the fields without a length.
"""

import base64
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

from msgspec import Struct

from palaver.archiver.redaction.redactor import find_secrets

from .planted import BASE32, DIGITS, HEX, LOWER, MIXED, chars, password, pem

FOLDER = Path(__file__).with_name("labelled")

_PLACEHOLDER = re.compile(r"\[secret:[^\]]*\]")

# Words of BIP-39's English list.
WORDS = """
abandon ability about absorb acoustic adapt afraid album anchor apple arena artist balance bamboo basket beach bicycle
blanket bright bronze cactus candy canyon carbon castle cherry circle coffee copper coral cradle cricket crystal daring
diamond doctor dolphin dragon eagle echo elbow elephant energy engine fabric fashion fancy father fiber forest fossil
galaxy garden garlic ginger gravity guitar hammer harvest honey humor island jacket jungle kidney kitten ladder lemon
lizard magnet maple marble mountain museum napkin noodle ocean olive orange oxygen panther parrot pencil pepper planet
quantum rabbit ribbon river rocket saddle salmon school shadow silver spider stadium sunset ticket tiger tunnel turtle
umbrella velvet violin walnut whale window winter yellow zebra
""".split()


def _phrase(source: random.Random) -> str:
    first, second, third = source.sample(WORDS, 3)
    return f"{first}-{second}-{source.randint(1, 99)}-{third}"


def _umlaut(source: random.Random) -> str:
    first, second = source.sample(UMLAUTS, 2)
    return f"{first.capitalize()}{source.choice('+.!_#')}{second.capitalize()}{source.randint(1, 99)}"


def _chosen(source: random.Random) -> str:
    first, second = source.sample(WORDS, 2)
    return f"{first}{source.choice('!#_-')}{second.capitalize()}{source.randint(10, 9999)}"


def _symbolic(source: random.Random, length: int) -> str:
    return chars(source, MIXED, length - 2) + "".join(source.sample("*!%#", 2))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


UMLAUTS = "gänse rüben krähe größe häher möwe schön blüte übung frühstück weißdorn jäger señal crème forêt łąka".split()

ALPHABETS = {
    "base32": BASE32,
    "base64": MIXED + "+/",
    "digits": DIGITS,
    "hex": HEX,
    "lower": LOWER,
    "mixed": MIXED,
    "upper": string.ascii_uppercase + DIGITS,
    "word": MIXED + "_-",
}
FIELDS: dict[str, Callable[[random.Random], str]] = {
    "b64basic": lambda source: _base64(f"deploy:{chars(source, MIXED, 16)}"),
    "b64config": lambda source: _base64(
        f"[db]\nuser = app\npassword = {chars(source, MIXED, 16)}\nhost = db.internal\n"
    ),
    "b64password": lambda source: _base64(password(source)),
    "b64pem": lambda source: _base64(pem(source) + "\n"),
    "b64ssh": lambda source: _base64(pem(source).replace("RSA", "OPENSSH")),
    "chosen": _chosen,
    "dashed": lambda source: "-".join(source.sample(WORDS, 3)),
    "discord": lambda source: (
        f"{_base64(chars(source, DIGITS, 18))}.{chars(source, MIXED, 6)}.{chars(source, MIXED, 38)}"
    ),
    "password": password,
    "phrase": _phrase,
    "plain": lambda source: f"{source.choice(WORDS)}{source.choice(WORDS)}{source.randint(1, 9)}",
    "sentence": lambda source: f"{' '.join(source.sample(WORDS, 2))} {source.choice(UMLAUTS)} {source.randint(10, 99)}",
    "symbols": lambda source: chars(source, f"{MIXED}!?{{}}()[]=>|&*#%^@,. ", 64).strip(),
    "umlaut": _umlaut,
    "uuid": lambda source: str(UUID(int=source.getrandbits(128), version=4)),
}


class Labelled(Struct, frozen=True):
    """Text and the half-open character ranges of the secrets in it."""

    kind: str
    text: str
    secrets: tuple[tuple[int, int], ...]

    def is_found(self) -> bool:
        """Return whether no character of the secrets is left."""
        gone = [(start, end) for start, end, _ in find_secrets(self.text.encode())]
        return all(any(first <= start and end <= last for first, last in gone) for start, end in self._in_bytes())

    def is_hidden(self, shown: str) -> bool:
        """Return whether `shown`, the redacted text, has no six characters in a row of any secret.

        Characters that also occur outside the secrets do not count.
        """
        shown = _PLACEHOLDER.sub("", shown)
        ends = [0, *(end for span in self.secrets for end in span), len(self.text)]
        outside = "\n".join(self.text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True))
        pieces = [piece for start, end in self.secrets for piece in self.text[start:end].split()]
        windows = {piece[start : start + 6] for piece in pieces for start in range(max(len(piece) - 5, 1))}
        return not any(shown.count(window) > outside.count(window) for window in windows)

    def _in_bytes(self) -> list[tuple[int, int]]:
        return [(len(self.text[:start].encode()), len(self.text[:end].encode())) for start, end in self.secrets]


def labelled(name: str, seed: int = 1) -> list[Labelled]:
    """Return the entries of `labelled/NAME.txt`, with values that depend on `seed` alone."""
    return list(_entries((FOLDER / f"{name}.txt").read_text(encoding="utf-8"), random.Random(seed)))


def _entries(content: str, source: random.Random) -> Iterator[Labelled]:
    for line in content.splitlines():
        if line and not line.startswith("#"):
            kind, template = line.split(" | ", 1)
            yield _filled(kind, template.replace("⏎", "\n").replace("⇥", "\t"), source)


def _filled(kind: str, template: str, source: random.Random) -> Labelled:
    text = re.sub("‹([^›]+)›", lambda field: _generated(field[1], source), template)
    pieces = re.split("[⟦⟧]", text)
    ends = [len("".join(pieces[: place + 1])) for place in range(len(pieces))]
    return Labelled(kind, "".join(pieces), tuple((ends[place - 1], ends[place]) for place in range(1, len(ends), 2)))


def _generated(field: str, source: random.Random) -> str:
    name, _, length = field.partition(" ")
    if name == "symbolic":
        return _symbolic(source, int(length))
    if name == "word" and not length:
        return source.choice(WORDS)
    if name == "words":
        return " ".join(source.choices(WORDS, k=int(length)))
    if name in FIELDS:
        return FIELDS[name](source)
    return chars(source, ALPHABETS[name], int(length)) if int(length) > 2 else source.choice(ALPHABETS[name])
