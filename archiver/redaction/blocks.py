"""Rules for secrets whose name is in another line, cell or field of the same block, such as a table or a manifest."""

from .assignments import NO_KEY, NOT_BARE
from .credentials import EXAMPLE_VALUES, LETTERS_ONLY
from .mentions import NO_RANDOM, NO_SECRET
from .rule import Rule

_NAME = (
    r"(?:passw(?:or)?d|passphrase|passwort|pwd|secret|token|credentials?"
    r"|(?:api|access|private|master|encryption)[ _-]?key)"
)
_LINE = r"(?:[ \t]*\d{1,6}(?:→|:|\t))?[ \t]*"
"""Pattern for a line number as agents' tools print it, followed by indentation."""
_QUOTE = r"\\?[\"'`]"
_QUOTED = rf"{_QUOTE}([^\s\"'`\\\x00]{{6,}}){_QUOTE}"
_BARE = r"([^\s\"'`\\\x00<>{}()\[\];,|&$][^\s\"'`\\\x00<>{}()\[\]]{5,})[ \t]*(?:$|[\r\n#])"
_EXCEPTIONS = (*NO_KEY, NOT_BARE, NO_SECRET)

# Rows of a manifest.
_ROW = rf"(?:{_LINE}(?:- )?[\w\"'.{{}}][^\n]*\n)"
_KIND = rf"^{_LINE}kind:[ \t]*[\"']?secret\b[^\n]*\n?"
_DATA = rf"(?:^{_LINE}(?:string)?data:[ \t]*\r?\n(?:{_LINE}[\w.-]+:[ \t]*[^\n]+(?:\n|$))+)"

# Cells of a table, with bars or as CSV.
_BAR = "[|│┃]"
_PAD = r"[ \t`*]*"
_CELL = r"[!#%$+0-9=?@A-Za-z^_~*-][^\s|│,;\"'`<>(){}\[\]\\\x00]{5,}"
_BARRED = rf"^(?:(?:[^\n]*{_BAR})?{_PAD}{_NAME}{_PAD}{_BAR}[^\n]*|[^\n]*{_BAR}[ \t\w`*-]*{_NAME}{_PAD})\r?\n"
_LISTED = rf"^(?:[\w -]*[\w,;\t -]*[,;\t])?{_NAME}(?:[,;\t][\w -]+)*\r?\n"

_COOKIE = r"\bcookies?(?:[\"']?[ \t]*[:=][ \t]*[\[{]|\.set\()[^\n}\])]*"
_COOKIE_HEADER = r"\bcookies?\\?[\"']?[ \t]*[:=][ \t]*\\?[\"'`]?[^\n\"'`\\{}\[\]]+"
_COOKIE_OPTION = r"\bcurl\b[^\n]*?[ \t](?:-b|--cookie)[ \t=][\"']?[^\n\"']+"

_CREDENTIAL_CALL = r"(?:credentials?\]?(?:::new)?|basicauth|auth[ \t]*=)[ \t]*\("

BLOCKS: tuple[Rule, ...] = (
    Rule(
        "assignment",  # - name: DB_PASSWORD⏎  value: …; {"name": "token", "value": "…"}; key="Password" value="…"
        rf"(?im)\b(?:name|key|id){_QUOTE}?[ \t]*[:=][ \t]*{_QUOTE}?[\w.:/-]*{_NAME}{_QUOTE}?,?"
        rf"(?:[ \t]*\r?\n{_LINE}|[ \t]+)?{_QUOTE}?value{_QUOTE}?[ \t]*[:=][ \t]*(?:{_QUOTED}|{_BARE})",
        (rf"{_NAME}[\"'`\\,]*(?:[ \t]|\r?\n[ \t]*(?:[0-9]+(?:→|:|\t))?)*[\"'`\\]*value",),
        entropy=2.0,
        allowed=_EXCEPTIONS,
    ),
    Rule(
        "assignment",  # variable "db_password" { default = "…" }; "db_password": {"default": "…"}
        rf"(?i){_NAME}{_QUOTE}?[ \t]*:?[ \t]*\{{[^{{}}]{{0,500}}?\bdefault{_QUOTE}?[ \t]*[:=][ \t]*{_QUOTED}",
        (rf"{_NAME}[\"'`\\]*[ \t]*:?[ \t]*\{{",),
        entropy=2.0,
        allowed=_EXCEPTIONS,
    ),
    Rule(
        "assignment",  # Values of a Kubernetes Secret with any name.
        r"(?m):[ \t]*[\"']?([^\s\"'{}]{8,})[\"']?[ \t]*(?:$|\r)",
        (r"kind:[ \t]*[\"']?secret\b",),
        allowed=(EXAMPLE_VALUES, LETTERS_ONLY),
        within=rf"(?im){_KIND}{_ROW}{{0,20}}?{_DATA}|{_DATA}{_ROW}{{0,20}}?{_KIND}",
    ),
    Rule(
        "assignment",  # Cookie: session=…; Set-Cookie: …; curl -b 'session=…'; cookies={"session": "…"}
        r"[\w.-]+(?:=|[\"']?:[ \t]*|[\"'],[ \t]*)[\"']?([^;\s\"'`\\,<>{}()=\x00]{16,}={0,2})",
        (r"cookies?(?:[\"'\\]*[ \t]*[:=]|\.set\()", "curl"),
        entropy=3.0,
        allowed=(EXAMPLE_VALUES, LETTERS_ONLY, NO_RANDOM),
        within=rf"(?i){_COOKIE}|{_COOKIE_HEADER}|{_COOKIE_OPTION}",
    ),
    Rule(
        "assignment",  # A line of a cookie file: domain, flag, path, flag, time, name, value.
        r"(?im)\t(?:TRUE|FALSE)\t[^\t\n]*\t(?:TRUE|FALSE)\t\d+\t[^\t\n]+\t([^\s]{16,})",
        (r"\t(?:true|false)\t[0-9]",),
        entropy=3.0,
        allowed=(LETTERS_ONLY,),
    ),
    Rule(
        "assignment",  # | DB_PASSWORD | … |
        rf"(?im){_BAR}{_PAD}[\w.-]*{_NAME}{_PAD}{_BAR}{_PAD}({_CELL}){_PAD}(?:{_BAR}|\r|$)",
        (rf"{_NAME}{_PAD}{_BAR}",),
        entropy=2.5,
        allowed=(*_EXCEPTIONS, NO_RANDOM),
    ),
    Rule(
        "assignment",  # Rows of a table in which the header names a column with secrets.
        rf"(?m)(?:^|{_BAR}|[,;\t])[ \t`*\"]*({_CELL})",
        (rf"{_NAME}{_PAD}(?:{_BAR}|\r?\n)", rf"{_NAME}[,;\t]"),
        entropy=2.5,
        allowed=(*_EXCEPTIONS, NO_RANDOM),
        within=rf"(?im){_BARRED}(?:[^\n]*[|│┃┼+][^\n]*(?:\n|$))+|{_LISTED}(?:[^\n]*[,;\t][^\n]*(?:\n|$))+",
    ),
    Rule(
        "assignment",  # .pgpass: host, port, database, user, password
        rf"(?im)(?:^[ \t>+|-]*{_LINE}|[\"' ])(?:[\w-]+(?:\.[\w-]+)*|\*):(?:\d{{4,5}}|\*):[\w*-]+:[\w*.-]+"
        r":([^\s:\"'`<>$][^\s\"'`<>]{5,})(?:$|[\"'\s])",
        (r":(?:[0-9]+|\*):[a-z0-9_*-]+:[a-z0-9_*.-]+:",),
        entropy=2.5,
        allowed=_EXCEPTIONS,
    ),
    Rule(
        "assignment",  # ConvertTo-SecureString "…"
        rf"(?i)(?:convertto-securestring(?:[ \t]+-[a-z]+)*[ \t]+(?:{_QUOTED}|([^\s\"'`$()-][^\s\"'`()]{{5,}}))"
        rf"|{_QUOTED}[ \t]*\|[ \t]*convertto-securestring)",
        ("convertto-securestring",),
        entropy=2.0,
        allowed=(*NO_KEY, NO_SECRET),
    ),
    Rule(
        "assignment",  # new NetworkCredential("anna", "…"); auth=("anna", "…")
        rf"(?i){_CREDENTIAL_CALL}[^()\n]{{0,100}}?,[ \t]*{_QUOTED}",
        (_CREDENTIAL_CALL,),
        entropy=2.0,
        allowed=(*NO_KEY, NO_SECRET),
    ),
)
