"""Secrets are replaced by placeholders."""

import random
import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.redaction import Redacted, Redactor, redactor
from palaver.core.text import visible

from .planted import AROUND_KEYS, AROUND_MENTIONS, AROUND_PASSWORDS, AROUND_TOKENS, TOKENS, key, password

REDACTOR = Redactor(b"0123456789abcdef")
OTHER = Redactor(b"fedcba9876543210")
TOKEN = TOKENS["github-pat"](random.Random(1))
PASSWORD = password(random.Random(1))


def text_with_secrets(seed: int) -> str:
    """Generate a secret of any kind in a typical context."""
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
LEFT_BEHIND = st.integers(0, 10_000).map(text_with_secrets)
TEXTS = st.lists(st.one_of(SHARDS, LEFT_BEHIND, st.text(max_size=12)), max_size=12).map("".join)


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Redacted text contains no further secrets."""
    once = REDACTOR.redact(text)

    assert REDACTOR.redact(once.text) == Redacted(once.text)


@given(TEXTS)
def test_every_finding_is_shown(text: str) -> None:
    """The text contains the placeholder of each secret, unless a later secret contains the earlier one."""
    done = REDACTOR.redact(text)
    kept = [finding for finding in done.findings if str(finding) in done.text]

    assert bool(kept) == bool(done.findings)


@given(TEXTS)
def test_nothing_else_changes(text: str) -> None:
    """The normal form of the text between placeholders is unchanged and in the same order."""
    text = redactor.normal_form(text)
    done = REDACTOR.redact(text)
    pieces = re.split("|".join(re.escape(str(finding)) for finding in done.findings) or "(?!)", done.text)
    place = 0
    for piece in pieces:
        place = text.index(piece, place) + len(piece)


@given(TEXTS)
def test_only_the_tag_depends_on_the_key(text: str) -> None:
    """Another key changes only the tags."""
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
    """A guess cannot be verified against a tag without the key."""
    assert REDACTOR.redact(TOKEN).findings[0].tag != OTHER.redact(TOKEN).findings[0].tag


def test_short_key_is_refused() -> None:
    """A key that can be guessed is rejected."""
    with pytest.raises(ValueError, match="15 bytes"):
        Redactor(b"0" * 15)


def test_no_secret_no_copy() -> None:
    """A text without secrets is returned unchanged, as the same object."""
    text = "nothing to see here \ud83d"

    assert REDACTOR.redact(text).text is text


def test_surrogates_survive() -> None:
    """A lone surrogate beside a secret is preserved."""
    done = REDACTOR.redact(f"\ud83d {TOKEN} \ude00é")

    assert done.text == f"\ud83d {done.findings[0]} \ude00é"


def test_placeholders_are_opaque() -> None:
    """A placeholder does not match any rule, and does not hide a secret that follows it."""
    before = 'password: "[secret:assignment:0a1b2c]" '
    done = REDACTOR.redact(before + f'token "[secret:jwt:0a1b2c]" password: "{PASSWORD}"')

    assert done.text.startswith(before)
    assert [finding.kind for finding in done.findings] == ["assignment"]
    assert PASSWORD not in done.text


def test_matches_that_contain_a_placeholder_stay() -> None:
    """A match that contains a placeholder is not redacted again."""
    text = "password: 'x[secret:jwt:0a1b2c]'"

    assert REDACTOR.redact(text.replace("[secret:jwt:0a1b2c]", PASSWORD)).findings
    assert REDACTOR.redact(text).findings == ()


def test_many_secrets_need_no_unfolding() -> None:
    """All visible secrets are found in one pass, however many there are."""
    secrets = [key(random.Random(seed)) for seed in range(100)]
    done = REDACTOR.redact("\n".join(f"api_key: {secret}" for secret in secrets))

    assert len(done.findings) == 100
    assert not [secret for secret in secrets if secret in done.text]


def test_overlapping_finds_are_one() -> None:
    """Overlapping matches of several rules are replaced once, with the kind of the most specific rule."""
    done = REDACTOR.redact(f'GITHUB_TOKEN="{TOKEN}"')

    assert done.text == f'GITHUB_TOKEN="{done.findings[0]}"'
    assert done.findings[0].kind == "github-pat"


def test_endless_unfolding_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text in which every redaction reveals a new secret becomes a single placeholder."""
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
"""Factor by which other load may slow down the same work."""


def work(text: str) -> float:
    """Return the CPU time of one redaction in seconds."""
    start = process_time()
    REDACTOR.redact(text)
    return process_time() - start


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_length(name: str) -> None:
    """Redaction time grows linearly with the length of the text."""
    text = HOSTILE[name] * (40_000 // len(HOSTILE[name]))

    assert any(work(text * 4) < 9 * max(work(text), 0.005) for _ in range(ATTEMPTS))


def test_a_secret_is_redacted_in_every_location() -> None:
    """A value that follows its name is also redacted where the same text repeats it without the name."""
    done = REDACTOR.redact(f"I typed {PASSWORD} there. Use password={PASSWORD} here, and\n{PASSWORD} as well.")

    assert PASSWORD not in done.text
    assert len(done.findings) == 3
    assert len(set(done.findings)) == 1


def test_a_short_secret_is_redacted_only_after_its_name() -> None:
    """A short value stays in locations where no name precedes it."""
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
def test_a_secret_has_the_same_kind_in_every_location(secret: str, kind: str) -> None:
    """Equal secrets have equal placeholders, even if different rules find them."""
    found = {str(each) for around in SURROUNDINGS for each in REDACTOR.redact(around.format(secret)).findings}
    assert [each.split(":")[1] for each in found] == [kind]


def test_invisible_characters_hide_no_secret() -> None:
    """A secret is found with any invisible character inside it or beside its name, and so never shown complete."""
    token = TOKEN
    signs = ["\u200b", "\u00ad", "\ufeff", "\u2060", "\u200d", "\U000e0041", "\x1b[0m", "\x1b[K", "\x07", "\u202e"]
    signs += ["\u200b\u200d\u200b", "\x1b]8;;http://x\x07"]
    texts = {sign: [f"use {token[:9]}{sign}{token[9:]} now", f"pass{sign}word = 'hK3{sign}92mQx7'"] for sign in signs}
    texts["no-break space"] = ["DB_PASSWORD\u00a0=\u00a0hK392mQx7", "Password\u202f: hK392mQx7"]
    shown = {sign: [visible(REDACTOR.redact(text).text) for text in those] for sign, those in texts.items()}

    assert [sign for sign, those in shown.items() if any(token in text or "hK392mQx7" in text for text in those)] == []


def test_a_text_without_secrets_is_stored_as_it_is_shown() -> None:
    """Redaction returns the visible form of a text, and keeps NUL, which marks where a transcript was clipped."""
    assert REDACTOR.redact("plain\u200b text\x1b[0m").text == "plain text"
    assert REDACTOR.redact("head\n\x0012\0\n\u200btail").text == "head\n\x0012\0\ntail"
