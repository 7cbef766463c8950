"""Secrets that a sentence, a command or a piece of code names in the middle of a line, as people type them."""

from .assignments import ENDING, NO_KEY, NOT_BARE, NUMBER, OPENING
from .credentials import STAND_IN
from .rules import Allowed, Rule

# German, Dutch, Swedish, Spanish, Portuguese, French, Polish, Russian, Chinese, Japanese and Korean as well.
_FOREIGN = (
    "(?:kennwort|wachtwoord|l[öo]senord|contrase[ñn]a|senha|mot de passe|has[łl]o|пароль|密码|密碼|パスワード|비밀번호)"
)
_LOGIN = rf"(?:{_FOREIGN}|passw(?:or)?d|passphrase|passcode|passwort|(?:^|[^a-z])(?:pwd|pass|pw))"
_KEY = rf"(?:{OPENING}[ _-]?key|secret|credentials?|[a-z_-]*token)"
_CLOSED = r"[ \t\"'`*\\\]]*"
_LINK = r"(?:=|:|：|->|=>|→|(?:is|was|ist|war|lautet|es|est|é|è|jest|är|to)[ \t:]|是|为|為|は)"
_OPEN = r"[ \t\"'`*\\]*"
_WORDS = r"(?:[ \t]+[A-Za-zÀ-ɏ'@.-]+)"
"""What stands between: the password for anna on staging is …"""

_CHARACTER = r"[!#$%*+./0-9:=?@A-Z^_a-z~-]"
_LAST = r"[!#$%+/0-9=?@A-Z^_a-z~-]"
# What stands behind tells a value from a piece of code: `(` and `[` do not follow a secret.
_TELLING = r"[0-9!#$%+^~]"
_FIRST = r"[!#%+0-9=?@A-Z^_a-z~]"
# As in assignments.py: what is joined by `&`, `;` or `,` and is no next field.
_PIECE, _PIECE_LAST = r"[!#$%*+./0-9?@A-Z^_a-z~-]*", r"[!#$%+/0-9?@A-Z^_a-z~-]"
_NUMBERED = rf"{_PIECE}[0-9](?:{_PIECE}{_PIECE_LAST})?"
_NEXT = rf"(?:&{_PIECE}{_PIECE_LAST}|[;,]{_NUMBERED})"
_VALUE = (
    rf"({_FIRST}{_CHARACTER}*[&;,]{_NUMBERED}{_NEXT}*|(?:{_FIRST}{_CHARACTER}*)?{_TELLING}{_CHARACTER}*{_NEXT}+"
    rf"|(?:{_FIRST}{_CHARACTER}*)?{_TELLING}(?:{_CHARACTER}*{_LAST})?)"
    r"[.:]*(?:$|[\"'`*<>)}\],;|&\\]|[^!-~])"
)

# Without counting, which makes a set of patterns slow: a name, a link and a value with a digit or a sign in it.
_NAMED = rf"(?:{ENDING}|credentials?|pw|passcode|{_FOREIGN})[\"'`\]\\ \t0-9_*-]*"
_SIGN = rf"{_NAMED}{_LINK}{_OPEN}(?:{_CHARACTER}|[;,&])*{_TELLING}"

_NO_SECRET = Allowed(
    patterns=(
        r"^[!#%+~]?[A-Za-z_./:@?=&-]+[!?]*$|^[^A-Za-z]+$",  # a word, a number, a date
        r"^.{1,5}$",
        r"(?i)^v?\d+(?:\.\d+)+|^\d+(?:[a-z]{1,4}|[/-][a-z]+)?$|^0x[0-9a-f]{1,8}$",  # a version, an amount
        r"^[a-z]+(?:_[a-z]+|[A-Z][a-z]+)*_?\d{1,2}$|^[A-Z_]+\d{1,2}$",  # the name of a variable
        r"=[^=]|\w:\w",  # the next setting
        r"@[\w-]+\.",  # an address
        r"[%?#].*=|^#|^[%?=]",
    )
)
_NO_RANDOM = Allowed(
    patterns=(
        r"^(?:[A-Z]*[a-z]{2,}\d{0,5})+[A-Z]?$|^(?:Ed|X)\d{3,5}[A-Z]",  # the name of a class
        r"^(?:[A-Za-z]{2,}\d{0,4}|\d+)(?:[._:/+-](?:[A-Za-z]{0,20}\d{0,4}|\d+[a-z]?))+$",  # words and numbers, joined
        r"^[A-Z0-9_]{1,12}$",
        r"^.{1,7}$",
    )
)
"""Names and models that stand behind `token` and the like, where only random characters tell a secret."""

MENTIONS: tuple[Rule, ...] = (
    Rule(
        "assignment",  # please use password=… for the staging box; the password is …
        rf"(?i){_LOGIN}{NUMBER}{_CLOSED}{_LINK}{_OPEN}{_VALUE}",
        (_SIGN,),
        entropy=2.0,
        allowed=(*NO_KEY, NOT_BARE, _NO_SECRET),
    ),
    Rule(
        "assignment",
        rf"(?i){_KEY}{NUMBER}{_CLOSED}{_LINK}{_OPEN}{_VALUE}",
        (_SIGN,),
        entropy=3.0,
        allowed=(*NO_KEY, NOT_BARE, _NO_SECRET, _NO_RANDOM),
    ),
    Rule(
        "assignment",  # the password for anna is …; log in as anna, password …
        rf"(?i)passw(?:or)?[dt](?:{_WORDS}{{1,5}}{_CLOSED}{_LINK}|[ \t]){_OPEN}{_VALUE}",
        (r"passwo?r?[dt][ \t]",),
        entropy=2.5,
        allowed=(*NO_KEY, NOT_BARE, _NO_SECRET, _NO_RANDOM),
    ),
    Rule(
        "assignment",  # mysql -u root -p…, where a blank would end the option; sshpass -p …
        r"(?:(?:mysql|mariadb|mycli)[a-z-]*[ \t][^\n|;&]*?[ \t]*-p|sshpass[ \t]+-p[ \t]*)"
        r"[\"']?([^\s\"'`$<>{}()\[\];,|&\\\x00=-][^\s\"'`<>{}()\[\];,|&\\\x00]{3,})",
        ("mysql", "mariadb", "mycli", "sshpass"),
        allowed=(STAND_IN, Allowed(patterns=(r"^[a-z_]+$|^\d{1,5}$|^[\w.-]+/",))),
    ),
)
