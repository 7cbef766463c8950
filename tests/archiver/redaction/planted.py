"""Secrets that are generated while the tests run, so that no scanner finds a secret in this repository."""

import base64
import random
import string
from collections.abc import Callable

HEX = "0123456789abcdef"
DIGITS = string.digits
LOWER = string.ascii_lowercase + DIGITS
MIXED = string.ascii_letters + DIGITS
BASE32 = string.ascii_uppercase + "234567"


def chars(source: random.Random, alphabet: str, length: int) -> str:
    """Return random characters with a digit, a lower-case and an upper-case letter if the alphabet has them."""
    musts = [kind for kind in (DIGITS, string.ascii_lowercase, string.ascii_uppercase) if set(kind) & set(alphabet)]
    while True:
        made = "".join(source.choices(alphabet, k=length))
        # The rules ignore text such as "xxxx" and words that consist only of letters.
        if all(set(made) & set(must) for must in musts) and len(set(made)) > min(length, len(alphabet)) // 3:
            return made


def pem(source: random.Random, between: str = "\n", lines: int = 12) -> str:
    """Return a private key of `lines` full lines."""
    mark = "-" * 5
    body = [chars(source, MIXED + "+/", 64) for _ in range(lines)]
    return between.join([f"{mark}BEGIN RSA PRIVATE{' '}KEY{mark}", *body, f"{mark}END RSA PRIVATE{' '}KEY{mark}"])


def jwt(source: random.Random) -> str:
    """Return a signed token."""
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{chars(source, DIGITS, 8)}","iat":17}}')
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, chars(source, MIXED + "-_", 43)])


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "anthropic-api-key": lambda source: "sk-" + "ant-api03-" + chars(source, MIXED + "_-", 93) + "AA",
    "aws-access-token": lambda source: "AK" + "IA" + chars(source, BASE32, 16),
    "digitalocean-pat": lambda source: "dop" + "_v1_" + chars(source, HEX, 64),
    "gcp-api-key": lambda source: "AI" + "za" + chars(source, MIXED, 35),
    "github-fine-grained-pat": lambda source: "github" + "_pat_" + chars(source, MIXED, 82),
    "github-pat": lambda source: "gh" + "p_" + chars(source, MIXED, 36),
    "gitlab-pat": lambda source: "gl" + "pat-" + chars(source, MIXED, 20),
    "huggingface-access-token": lambda source: "hf" + "_" + chars(source, string.ascii_letters, 34),
    "jwt": jwt,
    "npm-access-token": lambda source: "npm" + "_" + chars(source, LOWER, 36),
    "private-key": pem,
    "pypi-upload-token": lambda source: "pypi-" + "AgEIcHlwaS5vcmc" + chars(source, MIXED, 80),
    "sendgrid-api-token": lambda source: "SG" + "." + chars(source, MIXED, 66),
    "slack-bot-token": lambda source: (
        "xo" + "xb-" + chars(source, DIGITS, 11) + "-" + chars(source, DIGITS, 11) + "-" + chars(source, MIXED, 24)
    ),
    "stripe-access-token": lambda source: "sk" + "_live_" + chars(source, MIXED, 32),
}
"""Secrets by their kind in the rules."""


def password(source: random.Random) -> str:
    """Return a password as users choose it: letters, digits and a symbol."""
    return chars(source, string.ascii_lowercase, 6) + chars(source, DIGITS, 3) + source.choice("!%+*?~^") + "Q"


def key(source: random.Random) -> str:
    """Return a random key as programs generate it."""
    return chars(source, HEX, 32) if source.random() < 0.5 else chars(source, MIXED, 40)


def access_key(source: random.Random) -> str:
    """Return an AWS key: 40 base64 characters with `/`, which make it look like a path."""
    made = chars(source, MIXED, 40)
    return f"{made[:9]}/{made[10:23]}/{made[24:]}"


def joined(source: random.Random, sign: str) -> str:
    """Return a password with `sign` in the middle."""
    return f"{chars(source, MIXED, 6)}{sign}{chars(source, MIXED, 6)}"


AROUND_TOKENS = (
    "{}",
    "Use {} for now, I will rotate it.",
    'client = Client("{}")',
    "     7→const token = '{}';",
    '{{\\"env\\": {{\\"THING\\": \\"{}\\"}}}}',
    "+THING={}\n-THING=\n",
    "`{}`",
    "The key ({}), as said.",
    "the token is {}.",
    "[{}, 1]",
    "> export THING={}",
)
AROUND_PASSWORDS = (
    "DB_PASSWORD={}",
    "export PGPASSWORD='{}'",
    '{{"user": "root", "password": "{}"}}',
    '{{\\"password\\": \\"{}\\", \\"port\\": 22}}',
    'password = "{}"',
    "'db_password' => '{}',",
    "db:\n  password: {}\n  port: 5432",
    "     4→  password: {}\n     5→",
    '+    "userPassword" : "{}"',
    'config["password"] = "{}"',
    'password: str = "{}"',
    "mysqladmin --password {} status",
    "run --db-password={} --fast",
    "postgres://app:{}@db.internal:5432/main",
    "<add><Password>{}</Password></add>",
    "machine ftp.internal login root password {}",
    "curl -s -u anna:{} https://api.internal",
    "curl -X POST \\\n  --user 'anna:{}' \\\n  https://api.internal",
    'curl -u \\"anna:x{}\\" https://api.internal',
    "Password={}\r\nPort=21\r\n",
)
AROUND_KEYS = (
    "THING_API_KEY={}",
    'api_key: "{}"',
    "api_key: {}",
    '"apiKey": "{}",',
    "CLIENT_SECRET={}",
    "  secret_key_base: {}",
    "aws_secret_access_key = {}",
    "authToken: '{}',",
    "X-Api-Key: {}",
    "Authorization: Bearer {}",
    'headers={{"Authorization": "Token {}"}}',
    'curl -H "Authorization: Bearer {}" https://api.internal/v1',
    "https://{}@git.internal/team/repo.git",
    'access_token="{}"',
    "--api-key {}",
)
AROUND_MENTIONS = (
    "please use password={} for the staging box",
    "log in with user bob and password: {} now",
    "the staging password={} works",
    "PASSWORD is {}",
    "The password is `{}`.",
    "the password for bob on staging is {}, not the old one",
    "log in as bob, password {}, then look",
    "set the passphrase to {} please",
    "(pwd={})",
    "?user=bob&password={}&page=1",
    '{{"command": "login password={}\\\\nls"}}',
    "connect(host=h, password={}, port=1)",
    "mysql -u root -p{}",
    "mysqldump -u root -p'{}' shop > shop.sql",
    "sshpass -p {} ssh bob@staging.internal",
    "das Passwort ist {}, bitte",
    "la contraseña es {} y nada más",
    "пароль: {} и всё",
    "密码是{}，然后登录",
)
AROUND_ACCESS_KEYS = (
    *AROUND_KEYS[:9],
    "[default]\naws_secret_access_key={}\nregion = eu-west-1\n",
    "AWS_SECRET_ACCESS_KEY={} aws s3 ls",
    "export AWS_SECRET_ACCESS_KEY={}",
    "export AWS_SECRET_ACCESS_KEY='{}'; make",
    "aws:\n  secret_access_key: {}\n  region: eu-west-1",
    '{{"SecretAccessKey": "{}"}}',
    '{{\\"AWS_SECRET_ACCESS_KEY\\": \\"{}\\"}}',
    "aws configure set aws_secret_access_key {}",
    "AWS Secret Access Key [None]: {}",
    "the secret access key is {} for now",
    "ENV AWS_SECRET_ACCESS_KEY {}",
    "docker run -e AWS_SECRET_ACCESS_KEY={} box",
    "deploy --secret-key {} --fast",
    "<secretAccessKey>{}</secretAccessKey>",
    "Access key ID,Secret access key\nAK" + "IAQ7XJ2M4N5P6R7S2T,{}",
    "DB_PASSWORD={}",
    "API_TOKEN={}",
    "use password={} for now",
)
AROUND_JOINED = (
    "export DB_PASSWORD={}",
    "DB_PASSWORD={} ./run",
    "password={}",
    "password: {}",
    "db:\n  password: {}\n  port: 5432",
    "passwd={}\n",
    "use password={} now",
    "the password is {}.",
    "run --password {} --fast",
    "run --db-password={}",
)
