"""What stands in the place of a secret?"""

import random
import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.redaction import Redacted, Redactor, redactor

from .planted import AROUND_KEYS, AROUND_MENTIONS, AROUND_PASSWORDS, AROUND_TOKENS, TOKENS, key, password

REDACTOR = Redactor(b"0123456789abcdef")
OTHER = Redactor(b"fedcba9876543210")
TOKEN = TOKENS["github-pat"](random.Random(1))
PASSWORD = password(random.Random(1))


def planted(seed: int) -> str:
    """A secret of any kind, as somebody left it."""
    source = random.Random(seed)
    around, secret = source.choice(
        [
            (AROUND_TOKENS, TOKENS[source.choice(list(TOKENS))](source)),
            (AROUND_PASSWORDS, password(source)),
            (AROUND_MENTIONS, password(source)),
            (AROUND_KEYS, key(source)),
        ]
    )
    return source.choice(around).format(secret)


SHARDS = st.sampled_from(
    [
        *(
            "password",
            "token",
            "=",
            ": ",
            '"',
            "'",
            "\\",
            "\n",
            " ",
            "://",
            ":",
            "@",
            ".",
            "-",
            "secret",
            "\0",
            "é",
            "密",
        ),
        *(
            "\ud800",
            "[secret:",
            "[secret:jwt:0a1b2c]",
            "]",
            "Bearer ",
            "Authorization: ",
            "curl -u ",
            "kind: secret\ndata:\n",
        ),
        *("AK" + "IA", "ey" + "J", "-----" + "BEGIN PRIVATE KEY-----", "-----" + "END PRIVATE KEY-----", "$6$"),
    ]
)
LEFT_BEHIND = st.integers(0, 10_000).map(planted)
TEXTS = st.lists(st.one_of(SHARDS, LEFT_BEHIND, st.text(max_size=12)), max_size=12).map("".join)


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """In redacted text nothing is found, whatever the text was."""
    once = REDACTOR.redact(text)

    assert REDACTOR.redact(once.text) == Redacted(once.text)


@given(TEXTS)
def test_every_finding_is_shown(text: str) -> None:
    """Each finding's placeholder stands in the text, unless a later one took it in."""
    done = REDACTOR.redact(text)
    kept = [finding for finding in done.findings if str(finding) in done.text]

    assert bool(kept) == bool(done.findings)


@given(TEXTS)
def test_nothing_else_changes(text: str) -> None:
    """What stands between the placeholders stood in the text, in the same order."""
    done = REDACTOR.redact(text)
    pieces = re.split("|".join(re.escape(str(finding)) for finding in done.findings) or "(?!)", done.text)
    place = 0
    for piece in pieces:
        place = text.index(piece, place) + len(piece)


@given(TEXTS)
def test_only_the_tag_depends_on_the_key(text: str) -> None:
    """With another key the same is found."""
    kinds = [finding.kind for finding in REDACTOR.redact(text).findings]

    assert [finding.kind for finding in OTHER.redact(text).findings] == kinds


def test_placeholder_form() -> None:
    """A secret becomes its kind and six hexadecimal digits."""
    done = REDACTOR.redact(f"use {TOKEN} now")

    assert re.fullmatch(r"use \[secret:github-pat:[0-9a-f]{6}\] now", done.text)
    assert done.text == f"use {done.findings[0]} now"


def test_equal_secrets_have_equal_tags() -> None:
    """The same secret has the same tag in another text, another notation and after a restart."""
    tags = {
        Redactor(b"0123456789abcdef").redact(around.format(PASSWORD)).findings[0].tag
        for around in ('password: "{}"', "DB_PASSWORD={}", "postgres://app:{}@db.internal/main")
    }

    assert len(tags) == 1
    assert tags.isdisjoint(finding.tag for finding in REDACTOR.redact(f'password: "{PASSWORD}9"').findings)


def test_tags_are_keyed() -> None:
    """Who does not have the key cannot try whether a guess gives the tag."""
    assert REDACTOR.redact(TOKEN).findings[0].tag != OTHER.redact(TOKEN).findings[0].tag


def test_short_key_is_refused() -> None:
    """A key that could be guessed is refused."""
    with pytest.raises(ValueError, match="15 bytes"):
        Redactor(b"0" * 15)


def test_no_secret_no_copy() -> None:
    """A text without secrets comes back itself."""
    text = "nothing to see here \ud83d"

    assert REDACTOR.redact(text).text is text


def test_surrogates_survive() -> None:
    """Half a character beside a secret stays half a character."""
    done = REDACTOR.redact(f"\ud83d {TOKEN} \ude00é")

    assert done.text == f"\ud83d {done.findings[0]} \ude00é"


def test_placeholders_are_opaque() -> None:
    """A placeholder is no secret to any rule, and hides no secret that follows it."""
    before = 'password: "[secret:assignment:0a1b2c]" '
    done = REDACTOR.redact(before + f'token "[secret:jwt:0a1b2c]" password: "{PASSWORD}"')

    assert done.text.startswith(before)
    assert [finding.kind for finding in done.findings] == ["assignment"]
    assert PASSWORD not in done.text


def test_what_holds_a_placeholder_is_left() -> None:
    """What a rule would take together with a placeholder has been dealt with."""
    text = "password: 'x[secret:jwt:0a1b2c]'"

    assert REDACTOR.redact(text.replace("[secret:jwt:0a1b2c]", PASSWORD)).findings
    assert REDACTOR.redact(text).findings == ()


def test_many_secrets_need_no_unfolding() -> None:
    """All secrets that lie open are found at once, however many they are."""
    secrets = [key(random.Random(seed)) for seed in range(100)]
    done = REDACTOR.redact("\n".join(f"api_key: {secret}" for secret in secrets))

    assert len(done.findings) == 100
    assert not [secret for secret in secrets if secret in done.text]


def test_overlapping_finds_are_one() -> None:
    """A secret that several rules find is replaced once, under the name of the rule that knows it best."""
    done = REDACTOR.redact(f'GITHUB_TOKEN="{TOKEN}"')

    assert done.text == f'GITHUB_TOKEN="{done.findings[0]}"'
    assert done.findings[0].kind == "github-pat"


def test_endless_unfolding_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that shows a new secret each time one is taken out becomes a single placeholder."""
    monkeypatch.setattr(redactor, "PASSES", 1)
    done = REDACTOR.redact(f"use {TOKEN} now")

    assert re.fullmatch(r"\[secret:tangle:[0-9a-f]{6}\]", done.text)
    assert REDACTOR.redact(done.text).findings == ()


HOSTILE = {
    "one letter": "a",
    "names": "password = token: ",
    "open quotes": 'password: "',
    "users": "http://aaaa:",
    "keys": "-----" + "BEGIN PRIVATE KEY-----\n" + "A" * 20 + "\n" + "A " * 100,
    "heads": "ey" + "J" * 11 + ".",
    "curls": "curl -H x -u ",
    "elements": "<password ",
    "passwords": f'password="{PASSWORD}" ',
    "lines": f"api_key = {key(random.Random(1))}\n",
    "manifests": "kind: secret\ndata:\n  a: YWJjZGVmZ2hp\n",
    "tables": "| user | password |\n| anna | Kq7vRr29x |\n",
    "cookies": "cookie: a=b; session=Kq7vRr29xKq7vRr29x ",
    "wallets": "seed phrase: ocean lemon " + "maple " * 30,
    "commands": "docker login -u anna -p ",
    "placeholders": 'password="[secret:jwt:0a1b2c]" ',
}


ATTEMPTS = 20
"""How often a busy machine may make the same work look slow."""


def work(text: str) -> float:
    """Seconds of this process that redacting takes."""
    start = process_time()
    REDACTOR.redact(text)
    return process_time() - start


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_length(name: str) -> None:
    """Four times the text is four times the work, not sixteen times, whatever the text is."""
    text = HOSTILE[name] * (40_000 // len(HOSTILE[name]))

    assert any(work(text * 4) < 9 * max(work(text), 0.005) for _ in range(ATTEMPTS))


def test_a_secret_is_taken_out_wherever_it_stands() -> None:
    """A value that its name gave away is taken out where the same text repeats it without one, as the same secret."""
    done = REDACTOR.redact(f"I typed {PASSWORD} there. Use password={PASSWORD} here, and\n{PASSWORD} as well.")

    assert PASSWORD not in done.text
    assert len(done.findings) == 3
    assert len(set(done.findings)) == 1


def test_a_short_secret_is_taken_out_behind_its_name_only() -> None:
    """What could be a part of any word stays where no name tells of it."""
    done = REDACTOR.redact('password = "ab12cd" in lab12cde')

    assert done.text.endswith("in lab12cde")
    assert len(done.findings) == 1


SURROUNDINGS = (
    'token = "{}"',
    "GITHUB_TOKEN={}",
    "api_key: '{}'",
    "password={}",
    "the password is {}",
    "Authorization: Bearer {}",
    "https://me:{}@example.org/",
    "curl -u me:{} https://example.org/",
)


@pytest.mark.parametrize(("secret", "kind"), [(TOKEN, "github-pat"), ("q7Rt9ZxW2mK4vB8n", "assignment")])
def test_a_secret_is_called_the_same_wherever_it_stands(secret: str, kind: str) -> None:
    """By the rule that knows it alone where one does, else by one kind: equal secrets have equal placeholders."""
    found = {str(each) for around in SURROUNDINGS for each in REDACTOR.redact(around.format(secret)).findings}
    assert [each.split(":")[1] for each in found] == [kind]
