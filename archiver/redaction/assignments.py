"""Rules for secrets after a name such as `password =`, in settings, variables, arguments and XML elements."""

from .credentials import EXAMPLE_VALUES, LETTERS_ONLY
from .rule import AllowList, Rule

OPENING = (
    r"(?:api|app|access|account|auth|client|consumer|deploy|encryption|master|private|secret|session|shared|signing"
    r"|storage|webhook)"
)
"""Words that precede `key` in the name of a secret."""
NUMBER = r"(?:[_-]?\d{1,2})?"

# `pass` and `pwd` are also words and commands, and other words end in `auth`.
_LOGIN = r"(?:passw(?:or)?d|passphrase|passwort|[_\"'.-]pwd|[_\"'.-]pass)"
_KEY = (
    rf"(?:{OPENING}[_-]?key|secret(?:[_-]?(?:access|api|app|client)?[_-]?key)?(?:[_-]?base)?"
    r"|[a-z_-]*token|(?:^|[^a-z])auth)"
)
_UPPER = r"(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|(?:[A-Z0-9]+_)KEY|KEY_BASE|SECRET|TOKEN)"
_WORD = "(?:password|passwd|pass|pwd|passphrase|secret|token|(?:api|access|account)-?key)"
# password = "…", "password": "…", 'password' => '…', ["password"] = "…", password: str = "…"
_EQUALS = r"\\?[\"'`]?\]?[ \t]*(?::[ \t]*[\w.]+[ \t]*=|={1,3}|:=|=>|:)[ \t]*"
_QUOTED = r"[a-z]{0,2}\\?[\"'`]([^\s\"'`\\\x00]{6,})\\?[\"'`]"
_BARE_BEGIN = r"[^\s\"'`$<>{}()\[\];,|&\\\x00-]"
_BARE_REST = r"[^\s\"'`<>{}()\[\];,|&\\\x00]"
_BARE = rf"{_BARE_BEGIN}{_BARE_REST}{{5,}}"
# A part after `&`, `;` or `,` belongs to the password or is the next field. It is the next field if it is a name with
# `=` or `:`. After `;` and `,` it is also the next field if it has no digit, as in `;User Id=sa`.
_PIECE = r"[^\s\"'`<>{}()\[\];,|&\\\x00:=]"
_JOINED = rf"{_BARE_BEGIN}{_BARE_REST}*(?:&{_PIECE}+|[;,]{_PIECE}*[0-9]{_PIECE}*)+"
_VALUE = rf"(?:({_JOINED})(?:$|[\s\"'`<>{{}}()\[\];,|&\\\x00])|({_BARE}))"

# This pattern matches more than the rules. It has no repetition counts, which make a set of patterns slow.
ENDING = r"(?:passwo?r?d|passphrase|passwort|pwd|pass|key|base|secret|token|auth)"
_NAMED = rf"{ENDING}[\"'`\\\] \t0-9_-]*"
_KEYWORD = rf"{_NAMED}(?::[ \t]*[\w.]+[ \t]*)?[:=>]+[ \t]*[a-z\\]*[\"'`]"
_BARE_KEYWORD = rf"{_NAMED}[:=][ \t]*{_BARE_BEGIN}(?:{_BARE_REST}|[;,&])+[ \t]*(?:$|[\n\r#])"

# Values that follow such names in programs and prose, but are not secrets.
_NO_PASSWORD = (
    EXAMPLE_VALUES,
    AllowList(
        patterns=(
            r"^\$",
            r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$",  # the name of a variable
            r"(?i)^[a-z_.-]*passw(?:or)?d[a-z_.-]*$",  # a variable name
            r"^[a-z]+(?:[.:/][A-Za-z]+)+$",  # a path, the key of a message
            r"^\[|\[\w*\]$|^<|://",  # code
            r"(?i)^(?:u?int|float|bytes|big|str|utf|base|sha|md|aes|rsa|hs|rs|es)-?\d+\w*$",  # a type, a method
        )
    ),
)
NO_KEY = (
    *_NO_PASSWORD,
    LETTERS_ONLY,
    AllowList(
        patterns=(
            r"^[a-z]+\d?(?:[.:/_-][a-z]+\d?)+$",
            r"^(?:[A-Z]{0,5}[a-z]{2,}){2,}\d?(?:[A-Z]*[a-z]{2,})*[A-Z]*$|^[A-Z]+\d?$|^OAuth\d$",
            r"^[A-Z]\w+(?:Key|Token|Secret|Password|Credentials?)(?:Types?)?$",
        )
    ),
    AllowList(
        target="match", patterns=(r"(?i)^\W?(?:page|next|prev|start|end|cursor|continu|sync|[be]os|pad|unk|sep|cls)",)
    ),
)
_FOLDER = r"(?:[A-Z]?[a-z]{3,}|[A-Z]{4,})\d{0,4}"
_WITHIN = r"(?:[A-Za-z0-9]*/)*"
_PATH = (
    r"^(?:~|\.{1,2})/|^[\w./-]*[._-][\w.-]*/[\w./-]*$|^[\w./-]*/[\w./-]*[._-][\w./-]*$",
    r"^[A-Za-z/]*/[A-Za-z/]*$|^[a-z0-9/]*/[a-z0-9/]*$|^[A-Z0-9/]*/[A-Z0-9/]*$",
    r"^/?(?:\w{1,7}/)+\w{0,7}$",
    rf"^{_WITHIN}{_FOLDER}/[A-Za-z0-9/]*$|^(?:[A-Za-z0-9]*/)+{_FOLDER}$",
)
"""Patterns for paths, which are not secrets.

Base64 keys, which may also contain `/`, do not match. They mix digits and letters of both cases, and have long runs of
characters between slashes.
"""
NOT_BARE = AllowList(
    patterns=(
        r"^(?:[\w$]+\.)+[A-Za-z_$][\w$]*$",  # an attribute, the name of a file
        *_PATH,
        r"^\d{1,5}$|^\d+(?:[,;&.-]\d+)+$",  # a port, a number of tokens, several numbers
        r"^(?:[A-Za-z_]+\d{0,2},)+[A-Za-z_]+\d{0,2}$|^[A-Z]+_\w+,\w+$",  # names, arguments
        r"^.{1,5}$",
    )
)
"""Patterns for unquoted values that are not secrets, such as attribute names, file paths and port numbers."""

ASSIGNMENTS: tuple[Rule, ...] = (
    Rule(
        "assignment",
        rf"(?i){_LOGIN}{NUMBER}{_EQUALS}{_QUOTED}",
        (_KEYWORD,),
        allowed=_NO_PASSWORD,
    ),
    Rule(
        "assignment",
        rf"(?i){_KEY}{NUMBER}{_EQUALS}{_QUOTED}",
        (_KEYWORD,),
        entropy=2.5,
        allowed=NO_KEY,
    ),
    Rule(
        "assignment",  # NAME=value, as in environments
        rf"\b{_UPPER}{NUMBER}={_VALUE}",
        (rf"{ENDING}[0-9_-]*=",),
        allowed=(*_NO_PASSWORD, NOT_BARE),
    ),
    Rule(
        "assignment",  # name: value or name = value on a line of its own, as in YAML and INI
        r"(?im)^[ \t>+|-]*(?:\d{1,6}(?:→|:|\t)[ \t]*)?[\w./:@-]*?"
        rf"(?:{_LOGIN}|{_KEY}){NUMBER}[ \t]*[:=][ \t]*({_JOINED}|{_BARE})[ \t]*(?:$|\r|#)",
        (_BARE_KEYWORD,),
        entropy=2.0,
        allowed=(*NO_KEY, NOT_BARE),
    ),
    Rule(
        "assignment",  # <Password …>value</Password>
        rf"(?i)<[\w:.-]*{_WORD}(?:[ \t][^<>]*)?>\s*([^\s<>\x00]{{6,}})\s*</[\w:.-]*{_WORD}>",
        (f"{_WORD}>",),
        allowed=_NO_PASSWORD,
    ),
    Rule(
        "assignment",  # --password value
        rf"(?i)(?:^|[\s\"'`])--?(?:[a-z]+-)*{_WORD}[ \t=][ \t]*{_VALUE}",
        (rf"-{_WORD}[ \t=]",),
        entropy=2.0,
        allowed=(*NO_KEY, NOT_BARE),
    ),
    Rule(
        "assignment",  # .netrc
        r"(?i)\bmachine[ \t\n]+\S+[ \t\n]+login[ \t\n]+\S+[ \t\n]+password[ \t\n]+([^\s\"'`\x00]{6,})",
        (r"login[ \t\n]+\S+[ \t\n]+password",),
        allowed=_NO_PASSWORD,
    ),
    Rule(
        "assignment",  # AWS: after its name in any notation, or after its key id
        r"(?i)(?:secret[ _.-]?(?:access[ _.-]?)?key(?:[\s\"'`\\=:>,|*\]-]|\[\w*\]|\\[nrt]| is ){1,12}"
        r"|\b(?-i:A[KS]IA[A-Z2-7]{16})[\s\"'`,:;|]{1,5})([A-Za-z0-9/+]{40})(?:$|[^A-Za-z0-9/+=])",
        ("secret[ _.-]?(?:access[ _.-]?)?key", "akia", "asia"),
        entropy=3.5,
        allowed=(
            EXAMPLE_VALUES,
            AllowList(patterns=("^[^0-9]+$|^[^a-z]+$|^[^A-Z]+$", rf"^{_WITHIN}{_FOLDER}/{_WITHIN}{_FOLDER}(?:/|$)")),
        ),
    ),
)
