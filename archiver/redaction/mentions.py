"""Rules for secrets in sentences, commands and code in the middle of a line."""

from .assignments import ENDING, NO_KEY, NOT_BARE, NUMBER, OPENING
from .credentials import EXAMPLE_VALUES
from .rule import AllowList, Rule

# Words for `password` in German, Dutch, Swedish, Spanish, Portuguese, French, Polish, Russian, Chinese, Japanese and
# Korean.
_FOREIGN = (
    "(?:kennwort|wachtwoord|l[öo]senord|contrase[ñn]a|senha|mot de passe|has[łl]o|пароль|密码|密碼|パスワード"
    "|비밀번호|비번|패스워드)"
)
_LOGIN = rf"(?:{_FOREIGN}|passw(?:or)?d|passphrase|passcode|passwort|(?:^|[^a-z])(?:pwd|pass|pw))"
_KEY = rf"(?:{OPENING}[ _-]?key|secret|credentials?|[a-z_-]*token)"
_CLOSED = r"[ \t\"'`*\\\]]*"
_LINK = r"(?:=|:|：|->|=>|→|(?:is|was|ist|war|lautet|es|est|é|è|jest|är|to)[ \t:]|是|为|為|は|(?:은|는|이|가)[ \t:])"
_OPEN = r"[ \t\"'`*\\]*"
_WORDS = r"(?:[ \t]+[A-Za-zÀ-ɏ'@.-]+)"
"""Pattern for words between the name and the value of a secret: "the password for anna on staging is …"."""

_CHARACTER = r"[!#$%*+./0-9:=?@A-Z^_a-z~-]"
_LAST = r"[!#$%+/0-9=?@A-Z^_a-z~-]"
# The next character distinguishes a value from code: `(` and `[` do not follow a secret.
_DISTINCTIVE = r"[0-9!#$%+^~]"
_FIRST = r"[!#%+0-9=?@A-Z^_a-z~]"
# As in assignments.py, parts may be joined by `&`, `;` or `,` if they do not begin a new field.
_PIECE, _PIECE_LAST = r"[!#$%*+./0-9?@A-Z^_a-z~-]*", r"[!#$%+/0-9?@A-Z^_a-z~-]"
_NUMBERED = rf"{_PIECE}[0-9](?:{_PIECE}{_PIECE_LAST})?"
_NEXT = rf"(?:&{_PIECE}{_PIECE_LAST}|[;,]{_NUMBERED})"
_VALUE = (
    rf"({_FIRST}{_CHARACTER}*[&;,]{_NUMBERED}{_NEXT}*|(?:{_FIRST}{_CHARACTER}*)?{_DISTINCTIVE}{_CHARACTER}*{_NEXT}+"
    rf"|(?:{_FIRST}{_CHARACTER}*)?{_DISTINCTIVE}(?:{_CHARACTER}*{_LAST})?)"
    r"[.:]*(?:$|[\"'`*<>)}\],;|&\\]|[^!-~])"
)

# Three alternatives: a name, a link, and a value with a digit or symbol. The pattern has no repetition counts, which
# make a set of patterns slow.
_NAMED = rf"(?:{ENDING}|credentials?|pw|passcode|{_FOREIGN})[\"'`\]\\ \t0-9_*-]*"
_KEYWORD = rf"{_NAMED}{_LINK}{_OPEN}(?:{_CHARACTER}|[;,&])*{_DISTINCTIVE}"

NO_SECRET = AllowList(
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
NO_RANDOM = AllowList(
    patterns=(
        r"^(?:[A-Z]*[a-z]{2,}\d{0,5})+[A-Z]?$|^(?:Ed|X)\d{3,5}[A-Z]",  # the name of a class
        r"^(?:[A-Za-z]{2,}\d{0,4}|\d+)(?:[._:/-](?:[A-Za-z]{0,20}\d{0,4}|\d+[a-z]?))+$",  # words and numbers, joined
        r"^[A-Z0-9_]{1,12}$",
        r"^.{1,7}$",
    )
)
"""Patterns for class names, joined words and short values, which are not secrets after a name such as `token`."""

_COMMANDS = (
    r"(?:mysql|mariadb|mycli)[a-z-]*[ \t][^\n|;&]*?[ \t]*-p",
    r"sshpass[ \t]+-p[ \t]*",
    r"[a-z][ \t]login[ \t][^\n|;&]*?-p[ \t=]+",
    r"sqlcmd[ \t][^\n|;&]*?-P[ \t]*",
    r"redis-cli[ \t][^\n|;&]*?-a[ \t]+",
    r"ldap[a-z]+[ \t][^\n|;&]*?-w[ \t]+",
    r"(?:plink|pscp)[ \t][^\n|;&]*?-pw[ \t]+",
    r"-pass(?:in|out)?[ \t]+pass:",
)
_SEED = (
    r"(?:(?:(?:(?:seed|recovery|backup|secret|wallet|mnemonic)[ _-]?){1,3}(?:phrase|words)|mnemonic|seed|니모닉|시드)"
    r"[\"'`*)\]\\ \t]*(?:[:=(\[]|(?:is|are)[ \t:]|은|는)"
    r"|(?:(?:seed|recovery|secret)[ _-]phrase|mnemonic)[ \t])"
)
_SEED_WORD = "(?-i:[a-z]{3,8})"
_APART = r"(?:[\"'],\s*[\"']|,\s*|\s*\d{1,2}[.):]\s*|\s+(?:\d{1,2}[.):]?\s+)?|\\n)"
_PROSE = (
    "the|and|for|with|are|was|has|had|not|but|from|were|which|its"
    "|would|should|does|your|our|their|them|these|those|than|while|been|being|could|new|user|users|files|data|tests|after|using|default"
)
"""Common words that are not in the BIP-39 word list. A text with one of them is not a seed phrase."""

MENTIONS: tuple[Rule, ...] = (
    Rule(
        "assignment",  # please use password=… for the staging box; the password is …
        rf"(?i){_LOGIN}{NUMBER}{_CLOSED}{_LINK}{_OPEN}{_VALUE}",
        (_KEYWORD,),
        entropy=2.0,
        allowed=(*NO_KEY, NOT_BARE, NO_SECRET),
    ),
    Rule(
        "assignment",
        rf"(?i){_KEY}{NUMBER}{_CLOSED}{_LINK}{_OPEN}{_VALUE}",
        (_KEYWORD,),
        entropy=3.0,
        allowed=(*NO_KEY, NOT_BARE, NO_SECRET, NO_RANDOM),
    ),
    Rule(
        "assignment",  # the password for anna is …
        rf"(?i)passw(?:or)?[dt]{_WORDS}{{1,5}}{_CLOSED}{_LINK}{_OPEN}{_VALUE}",
        (r"passwo?r?[dt][ \t]",),
        entropy=2.5,
        allowed=(*NO_KEY, NOT_BARE, NO_SECRET),
    ),
    Rule(
        "assignment",  # log in as anna, password …
        rf"(?i)passw(?:or)?[dt][ \t]{_OPEN}{_VALUE}",
        (r"passwo?r?[dt][ \t]",),
        entropy=2.5,
        allowed=(*NO_KEY, NOT_BARE, NO_SECRET, NO_RANDOM),
    ),
    Rule(
        "assignment",  # Commands that accept a password in a short option: mysql -p…, docker login -p …, sqlcmd -P …
        rf"(?:{'|'.join(_COMMANDS)})"
        r"[\"']?([^\s\"'`$<>{}()\[\];,|&\\\x00=-][^\s\"'`<>{}()\[\];,|&\\\x00]{3,})",
        (
            "mysql",
            "mariadb",
            "mycli",
            "sshpass",
            r"[a-z][ \t]login[ \t]",
            "sqlcmd",
            "redis-cli",
            "ldap",
            "-pw[ \t]",
            "pass:",
        ),
        allowed=(EXAMPLE_VALUES, AllowList(patterns=(r"^[a-z_]+$|^\d{1,5}(?::\d+)*$|^[\w.-]+/",))),
    ),
    Rule(
        "seed-phrase",  # 12 to 24 words of a wallet after a name. Words of BIP-39 have three to eight letters.
        rf"(?i){_SEED}[\s\"'`*(\[\\]*(?:\d{{2}}[ -]words?[\s):]*)?(?:1[.):][ \t]*)?"
        rf"({_SEED_WORD}(?:{_APART}{_SEED_WORD}){{11}}(?:(?:{_APART}{_SEED_WORD}){{3}}){{0,4}})\b",
        (
            r"(?:seed|mnemonic|phrase|words|니모닉|시드)[\"'`*)\]\\ \t]*(?:[:=(\[]|(?:is|are)[ \t:]|은|는)",
            r"(?:phrase|mnemonic)[ \t]",
        ),
        allowed=(AllowList(patterns=(rf"^(?:\w+\W+(?:\d+\W+)?){{0,11}}(?:{_PROSE})\b",)),),
    ),
)
