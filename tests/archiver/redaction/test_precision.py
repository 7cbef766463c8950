"""Text without secrets stays unchanged."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from palaver.archiver.redaction import Redactor

from ...cases import for_each
from ...shared import SAMPLES

REDACTOR = Redactor(b"0123456789abcdef")

PLAIN = """
The password is wrong, so the token: "expired" error came back.
Set DB_PASSWORD to your own secret, then run make test.
password = getpass.getpass("Password: ")
password=args.password, token=args.token
token = os.environ["API_TOKEN"]
const apiKey = process.env.OPENAI_API_KEY;
API_KEY=$OPENAI_API_KEY
API_KEY=${API_KEY:-default}
api_key: "{{ secrets.API_KEY }}"
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
"api_key": "YOUR_API_KEY",
"api_key": "<your-api-key>",
"password": "********",
password: "xxxxxxxx"
token_type: "bearer"
tokens: 4096, max_tokens = 8192
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
"next_page_token": "cGFnZTItYWJjZGVm123"
self.token: Token | None = None
def login(self, username: str, password: str) -> Session:
password: z.string().min(8),
<input type="password" name="password" placeholder="Password">
if token == "identifier": return
"password": "auth.login.password",
secret: kubernetes.io/service-account-token
private_key_path: ~/.ssh/id_ed25519
TOKEN_FILE=/run/secrets/token
SSH_KEY=/home/anna/.ssh/id_rsa
SSH_KEY=~/.ssh/id_ed25519
key_path=/home/me/keys/id
token_url=https://auth.example.org/oauth2/Token4You
SIGNING_KEY=certs/Release2026/Signing/AndroidKey7
HOST_KEY=/Users/Anna/Library/Keys/Signing2026Release
secret_access_key: models/Qwen2VL7B/Chat/Version2/Checkpt9
secret access key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
aws_secret_access_key = var.aws_secret_access_key
SORT_KEY=name,id2 PARTITION_KEY=1,2,3,4
{password:input1,user2}; define userPassword OBJ_X509,35L
tests pass: 14/14
--pwd, --status, --token-file
Authorization: Bearer <token>
Authorization: Bearer ${token}
headers["Authorization"] = f"Bearer {token}"
https://user:password@example.com/path
postgres://user:${DB_PASSWORD}@localhost:5432/db
git@github.com:team/repo.git
http://localhost:3000/api/v1?email=anna@example.com
-----BEGIN PRIVATE KEY----- and the matching end line must be there
commit 3f786850e387550fdab836ed7e6dc881de23001b fixes sourcegraph search
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
session 0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01
key: Ed25519PrivateKey, publicKey: Uint8Array
"integrity": "sha512-abc123def456=="
curl -u "$USER:$TOKEN" https://api.internal
curl -s http://localhost:8080/health | sort -u | cut -d: -f1
docker run -u 1000:1000 curlimages/curl -s https://api.internal
Use `secret_key` as primary key: it is unique.
Das Passwort: siehe Handbuch
The password in commit a1b2c3d4e5f6 is wrong, the token at step 12 is v2.
self.password = self.password2 or other.password3
login(password=get_pass2(user), token=token1, secret=secret_2)
token=token, password=password, password: str, token: Int32, key: Uint8Array
The secret is Ed25519PrivateKey, the token is gpt-4o-mini-2024, max token: 128k now
password = ${PASSWORD1} or <your password1> or *** or password1
if (password == input2) return
The password is important! The passphrase is never/stored1, pass: 14/14 and 12.5s.
| password: 2024-11-22T10:00:00Z | token = 0x1f | secret = 1.2.3 |
mysql -u root -p shop, mysql -p3306 -h db, mysql -u root -p$MYSQL_PWD shop
sshpass -p "$PASS1" ssh bob@staging.internal; cp -p Kq7vRr29 there
"""


@for_each("line", PLAIN.strip().splitlines())
def test_plain_line_stays(line: str) -> None:
    """Prose, code and examples that only mention secrets stay unchanged."""
    assert REDACTOR.redact(line).text == line


def test_plain_text_stays() -> None:
    """The same lines, joined into one text, stay unchanged."""
    assert REDACTOR.redact(PLAIN).text == PLAIN


def test_code_between_markers_stays() -> None:
    """Code between the first and the last line of a key, as named in a program, stays unchanged."""
    mark = "-" * 5
    code = f'BEGIN = "{mark}BEGIN PRIVATE KEY{mark}"\n{"lines = [line.strip() for line in body]" * 5}\n'
    code += f'END = "{mark}END PRIVATE KEY{mark}"\n'

    assert REDACTOR.redact(code).text == code


def strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner = cast("dict[str, object] | list[object]", value)
        for one in inner.values() if isinstance(inner, dict) else inner:
            yield from strings(one)


def transcript_texts(path: Path) -> Iterator[str]:
    """Yield every text in a transcript."""
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):
            yield from strings(json.loads(line))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared transcripts are not here")
def test_real_conversations_stay() -> None:
    """Transcripts without secrets have less than one false match in a million characters."""
    texts = {text for path in SAMPLES.rglob("*.jsonl") for text in transcript_texts(path)}
    found = sum(len(REDACTOR.redact(text).findings) for text in texts)

    assert found < sum(map(len, texts)) / 1_000_000
