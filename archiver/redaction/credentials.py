"""Rules for secrets that are recognised by their form: keys, tokens, hashes, URLs and headers."""

from .rule import AllowList, Rule

# Separators between two lines of a key: whitespace (also escaped), quotes and punctuation that join strings and lines,
# and line numbers that agents' tools print.
SEPARATOR = r"""(?:[\s"'`+,;|>#*\\]|\\[nrt]|\d{1,6}(?:→|:|\t))"""
_HEADER = r"(?:[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,100})"
_BEGIN = rf"(?i:-----BEGIN[ A-Z0-9_-]{{0,100}}PRIVATE KEY(?: BLOCK)?-----)(?:{SEPARATOR}+{_HEADER})*"
_END = r"(?i:-----END[ A-Z0-9_-]{0,100}KEY(?: BLOCK)?-----)"
_PRIVATE_END = r"(?i:-----END[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----)"
_BASE64 = r"[A-Za-z0-9+/=]"

_EXAMPLES = """
your my some the an? example sample dummy fake mock stub tests? testing demo foo bar baz placeholder change-?me change
replace insert enter here todo none null undefined redacted hidden masked secret token password passwd pass pwd
passphrase key apikey credentials? value string text bearer basic user invalid wrong correct valid expired missing bad
new old
"""

EXAMPLE_VALUES = AllowList(
    patterns=(
        r"^[<\[({].*[>\])}]$",  # <token>, {token}, [token]
        r"^\$\w|\$[A-Z_]{3}|[$#%]\{|\$\(|\{\w*\}|\{\{|<%|%\w*%|%[sdv]$",  # placeholders
        r"\*{3}|\.{3}|…|•••|(?i:x{4})|_{4}|-{4}",  # masked or omitted
        r"^(.)?(?:0+|1+|9+|[#*.x_-]+)$",
        r"(?i)^(?:1234567890?|0123456789|12345678|abcdef\d*|abc123|0123456789abcdef)",
        rf"(?i)^(?:.*[_.:/-])?(?:{'|'.join(_EXAMPLES.split())})(?:[_.:/-].*)?$",
    ),
)
"""Patterns for values that are clearly not secrets: templates, masks, examples."""

LETTERS_ONLY = AllowList(patterns=(r"^[A-Za-z_.:/-]+$",))
"""Pattern for values without digits. These are names and words, not random characters."""

CREDENTIALS: tuple[Rule, ...] = (
    Rule(
        "private-key",
        # A whole key, or the long lines of a truncated key.
        rf"{_BEGIN}(?:{SEPARATOR}+{_BASE64}{{16,}}(?:{SEPARATOR}+{_BASE64}+)*{SEPARATOR}*{_END}"
        rf"|(?:{SEPARATOR}+{_BASE64}{{16,}})+)",
        ("private key",),
    ),
    Rule(
        "private-key",  # The end of a key whose beginning is missing.
        rf"({_BASE64}{{16,}}(?:{SEPARATOR}+{_BASE64}+)*{SEPARATOR}*{_PRIVATE_END})",
        ("-----end",),
    ),
    Rule(
        "private-key",
        rf"Private-Lines: \d+{SEPARATOR}+({_BASE64}{{8,}}(?:{SEPARATOR}+{_BASE64}{{8,}})*)",
        ("private-lines: ",),
    ),
    Rule(
        "jwt",
        r"\b(eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]*){0,3}={0,2})",
        (r"eyj[\w-]",),
        entropy=3.0,
    ),
    Rule(
        "jwt",  # Encrypted: the second part is not JSON.
        r"\b(eyJ[\w-]{16,}\.[\w-]*\.[\w-]{8,}\.[\w-]{16,}\.[\w-]{16,})",
        (r"eyj[\w-]",),
        entropy=3.0,
    ),
    Rule(
        "url-credentials",
        r"(?i)\b[a-z][a-z0-9+.-]{1,30}://[^\s:/\"'`<>\\]{0,100}:([^\s/\"'`<>\\]{3,200})@[\w\[.-]",
        (r"://[^\s:/]*:[^\s/]*@",),
        allowed=(EXAMPLE_VALUES, AllowList(patterns=(r"^\d{1,5}[,;]",))),
    ),
    Rule(
        "url-credentials",
        r"(?i)\bhttps?://([a-z0-9_-]{20,200})(?::|:x-oauth-basic)?@[\w.-]",
        ("https?://[a-z0-9_:-]*@",),
        entropy=3.0,
        allowed=(EXAMPLE_VALUES, LETTERS_ONLY),
    ),
    Rule(
        "authorization",
        r"(?i)\b(?:authorization|x-(?:[a-z]+-){0,3}(?:key|token|secret)|api-?key)"
        r"\\?[\"'`]?\]?[ \t]*[:=,][ \t]*[a-z]?\\?[\"'`]?"
        r"(?:(?:bearer|basic|token|digest|apikey|bot|key|negotiate)[ \t]{1,5})?([\w.~+/=:-]{8,})",
        ("authorization", "x-[a-z-]*(?:key|token|secret)", "api-?key"),
        entropy=2.5,
        allowed=(EXAMPLE_VALUES, LETTERS_ONLY),
    ),
    Rule(
        "authorization",
        r"(?i)\bbearer[ \t]{1,5}([\w.~+/=-]{16,})",
        (r"bearer[ \t]",),
        entropy=3.0,
        allowed=(EXAMPLE_VALUES, LETTERS_ONLY),
    ),
    Rule(
        "authorization",
        r"(?i)\bauthorization\\?[\"'`]?[ \t]{0,5}[:=,][ \t]{0,5}\\?[\"'`]?basic[ \t]{1,5}([a-z0-9+/]{8,}={0,2})",
        (r"basic[ \t]",),
        allowed=(EXAMPLE_VALUES, AllowList(patterns=("^[a-z]+$|^[A-Z]+$|^[A-Z]?[a-z]+(?:[A-Z][a-z]+)*$",))),
    ),
    Rule(
        "curl-auth-user",
        r"\bcurl\b(?:[^\n]*\n){0,5}?[^\n]*?[ \t](?:-u|--user)[ \t=]*\\?[\"']?[^\s:\"'\\]{0,100}:([^\s\"'`\\\x00]{3,})",
        ("curl",),
        allowed=(EXAMPLE_VALUES,),
    ),
    Rule(
        "password-hash",
        r"(\$(?:1|5|6|7|y|gy|apr1|2[abxy]?|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$[\w./+=,$-]{20,200})",
        (r"\$(?:1|5|6|7|y|gy|apr1|2[abxy]?|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$",),
        entropy=3.0,
    ),
)
