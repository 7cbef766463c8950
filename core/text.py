"""Text functions: sentences, titles, shortening at clauses, removal of terminal escapes, similar names, and globs.

Markdown, invisible characters and invalid Unicode are removed too. A shortened sentence ends before a clause or a
phrase.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

_CLAUSE = re.compile(
    r"""\s(?:—|–|-|->|→|&|\+)\s|[;:,.](?=\s)|\s\(
    |\s(?:and|but|or|while|so|because|since|instead|after|before)\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the start of a clause, such as ` because `, a comma or a dash."""
_RELATIVE = re.compile(r"\s(?:that|which|who|whose|where|when|if)\s", re.IGNORECASE)
"""Pattern for the start of a clause that depends on the words before it, such as ` that ` in `the part that failed`."""
_COMPLETE = 4
"""A text may end before a relative clause only if its own clause has more words than this."""
_ADVERBIAL = re.compile(
    r"""\s*(?:in|at|on|when|whenever|if|while|once|after|before|since|because|although|though|during|for|with|without|as
    |to|by|inside|until|unless|given)\s(?:[^,;.!?]|[.!?](?=\S))*,\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the beginning of a sentence before its main clause, as in `In app.py, when a call fails, it retries`."""
_PHRASE = re.compile(r"\s(?:by|with|without|for|from|using|containing|in|on|into|to|as)\s", re.IGNORECASE)
"""Pattern for the start of a phrase within a clause, such as ` with ` or ` from `."""
_DANGLING = frozenset(
    "a an the of to and or nor but for from with without in on at by as into onto over under via per is are was were be"
    " that which who when where while if then than so it its this these those not no do does did has have had can will"
    " would should could must may might both all any each such their your our my his her because since until after"
    " before between also only when same new containing".split()
)
_PRONOUNS = frozenset("it its this that these those both all any each such so then also only same not no".split())
"""Words of `_DANGLING` that can end a complete sentence."""
_LOOSE = " ,;:.—–-→>&+/"
_OPEN_TO_CLOSED = {"(": ")", "[": "]", "“": "”"}


def end_at_clause(text: str, end: int, least: int, lowest: int | None = None) -> str:
    """Shorten a text to end before its last clause, or else before its last phrase.

    Function words and punctuation at the end are removed.

    Args:
        text: A text that is too long, or its beginning.
        end: Position at which the text ends if no clause or phrase begins there. It is between two words.
        least: Earliest position at which the text may end.
        lowest: Lower limit for a last attempt: if nothing begins at or after `least`, the text ends before the last
            clause that begins at or after `lowest`. None for no such attempt.
    """
    for starts, earliest in ((_clauses(text), least), (_starts(_PHRASE, text), least), (_clauses(text), lowest)):
        if earliest is not None and (usable := [start for start in starts if start >= earliest]):
            return _without_loose_end(text[: usable[-1]])
    return _without_loose_end(text[:end])


def complete_clauses(text: str, least: int) -> str:
    """Return the text up to the start of its last clause at or after `least`, or an empty string without one."""
    starts = [start for start in _clauses(text) if start >= least]
    return _without_loose_end(text[: starts[-1]]) if starts else ""


def is_open_ended(text: str) -> bool:
    """Return whether a text ends with a function word or a colon, so that something must follow."""
    last = text.rpartition(" ")[2].lower().strip(_LOOSE)
    return text.rstrip("*` ").endswith((":", "：")) or (last in _DANGLING and last not in _PRONOUNS)


def _clauses(text: str) -> list[int]:
    """Return the positions before which a text may end: the starts of the clauses after its main clause.

    The start of a relative clause counts only if more than `_COMPLETE` words of the enclosing clause precede it.
    """
    main = 0
    while adverbial := _ADVERBIAL.match(text, main):
        main = adverbial.end()
    clauses = [start for start in _starts(_CLAUSE, text) if start > main]
    relative = [
        start
        for start in _starts(_RELATIVE, text)
        if start > main
        and len(text[max([0, *(clause for clause in clauses if clause < start)]) : start].split()) > _COMPLETE
    ]
    return sorted([*clauses, *relative])


def _starts(pattern: re.Pattern[str], text: str) -> list[int]:
    return [match.start() for match in pattern.finditer(text)]


def _without_loose_end(text: str) -> str:
    """Remove an unclosed bracket, and trailing function words and punctuation."""
    for opened, closed in _OPEN_TO_CLOSED.items():
        if text.count(opened) > text.count(closed):
            text = text[: text.rfind(opened)] or text
    words = text.rstrip(_LOOSE).split(" ")
    while len(words) > 1 and (words[-1].lower() in _DANGLING or not words[-1].strip(_LOOSE)):
        words.pop()
    return " ".join(words).rstrip(_LOOSE)


_CODE_SPAN = re.compile(r"(`+)([^`\n]+)\1")
_LINK = re.compile(r"!?\[([^\]\n]{1,200})\]\((?:[^()\s]|\([^()\s]*\)){1,400}\)")
_TAG = re.compile(r"</?(?:b|i|em|strong|br|p|code|sub|sup|kbd)\s*/?>", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<![\w*/])\*(?=[^\s*])([^*\n]{1,80})(?<=[^\s*])\*(?![\w*/])")
_ORNAMENT = re.compile("[\ufe0f\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]")
"""Pattern for a pictogram, and for the variation selector that selects the coloured form of the character before it."""
_BLANKS = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]*`]*(?=\s+[^\sa-z]|\s*$)|[。！？]")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)\.$|^\s*\d{1,2}\.$", re.IGNORECASE)
_OPENER = re.compile(
    r"""(?:(?:ok|okay|great|good|nice|cool|perfect|thanks|thank\ you|please|pls|also|and|now|then|so|hey|hi|hello|well
    |wait|yes|yep|yeah|sure|h+m+|uh+|a+h+|oh|omg|omfg|wtf|dude|my\ dude|alright|actually|indeed|first)\b[,.!:\s]+
    |no[,.!]\s+
    |(?:i\ remember\ now|for\ that|the\ good\ news)[,:]\s+
    |(?:task|scope|goal|request|todo)\s?:\s+
    |[,;:+*>)\]]+\s*(?=\w)
    |[\-–—]+\s+(?=\w)
    |(?:['"‘“][/~][^'"’”]+['"’”]|https?://\S+|/\S+/\S+)[\s,:;-]+(?=\w+[\s,]+\w+)
    |(?:can|could|would|will)\ (?:you|we)(?:\ please|\ also|\ maybe|\ now|\ just)*\s+
    |i(?:\ would|'d)?\ (?:like|want|need)(?:\ you)?\ to\s+
    |i\ think\ (?:that\ )?
    |we\ (?:should|must|need\ to|have\ to|could)(?:\ also|\ now)?\s+(?!not\b)
    |let['’]?s\s+|go\ ahead\ and\s+)""",
    re.IGNORECASE | re.VERBOSE,
)
_PARENTHESIS = re.compile(r"(?<=\S) \([^()]*\)")
_LOOSE_ENDS = " .:;,!。"
_LEFT_MIN = 0.25
"""Minimum length of text truncated at the end of a clause, as a share of the limit.

If the last clause ends earlier, the text is truncated between words.
"""


def code_spans(markdown: str) -> list[str]:
    """Return the texts between backquotes."""
    return [span.group(2) for span in _CODE_SPAN.finditer(markdown)]


def strip_markdown(markdown: str) -> str:
    """Return one line without emphasis, link targets and backquotes. Code keeps its characters."""
    pieces: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(markdown):
        pieces += (_unmarked(markdown[end : span.start()]), span.group(2))
        end = span.end()
    pieces.append(_unmarked(markdown[end:]))
    return _BLANKS.sub(" ", "".join(pieces)).strip()


def _unmarked(text: str) -> str:
    # Most texts have no markup, and a search for one character is much faster than a pattern.
    text = _LINK.sub(r"\1", text) if "](" in text else text
    text = _TAG.sub(" ", text) if "<" in text else text
    text = _EMPHASIS.sub(r"\1", text.replace("**", "")) if "*" in text else text
    text = text.replace("`", "")
    return text if text.isascii() else _ORNAMENT.sub("", text)


def sentences(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of each sentence of a line, without surrounding whitespace."""
    start = 0
    code = [span.span() for span in _CODE_SPAN.finditer(line)] if "`" in line else []
    for stop in _SENTENCE_END.finditer(line):
        if any(opened < stop.start() < closed - 1 for opened, closed in code):
            continue
        if _ABBREVIATED.search(line, max(start, stop.start() - 8), stop.start() + 1):
            continue
        yield from _trimmed(line, start, stop.end())
        start = stop.end()
    yield from _trimmed(line, start, len(line))


def _trimmed(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = line[start:end]
    if part.strip():
        yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def truncate(text: str, limit: int) -> str:
    """Truncate text to `limit` characters at the end of a sentence or clause, or between words."""
    if len(text) <= limit:
        return text
    head = text[: limit + 1]
    ends = [end for _, end in sentences(head) if limit * 0.4 <= end < len(head.rstrip())]
    if ends:
        return head[: ends[-1]]
    word = head.rfind(" ") if head.rfind(" ") > 0 else limit
    shortened = end_at_clause(head, word, round(limit * 0.6), round(limit * 0.35))
    return shortened if len(shortened) >= limit * _LEFT_MIN else head[:word].rstrip()


_TAG_LINE = re.compile(r"^[ \t]*</?[a-z]+(?:_[a-z]+)+>[ \t]*(?:\n|\Z)", re.MULTILINE)


def without_tag_lines(text: str) -> str:
    """Return a prompt without the lines that only open or close a part of it, such as `<planning_context>`."""
    return _TAG_LINE.sub("", text)


_OPENING_TAG = re.compile(r"(?:<[a-z]+(?:_[a-z]+)+>|\[\[ ## \w+ ## \]\])\s*(?=\S)")


def title_of_start(start: str) -> str:
    """Return a title from the beginning of a prompt, without the tag and the Markdown of its first part.

    Tags are such as `<planning_context>` and `[[ ## query ## ]]`. A beginning that was cut ends with its last whole
    clause, or else with its last whole word.
    """
    opening = _OPENING_TAG.match(start)
    title = strip_markdown(start[opening.end() :]) if opening else start
    if not title.endswith("…"):
        return title
    return shorten(title, len(title) - 1) or f"{title.rpartition(' ')[0] or title[:-1]}…"


_DONE = (
    "added|applied|changed|cleaned up|completed|configured|created|deleted|enabled|fixed|implemented|improved|installed"
    "|integrated|merged|migrated|moved|refactored|removed|renamed|replaced|resolved|restored|rewritten|updated|upgraded"
)
_CLAIM = re.compile(rf"(?:\A|: )(?:{_DONE})\b|\b(?:{_DONE})\W*\Z", re.IGNORECASE)


def claims_change(title: str) -> bool:
    """Return whether a title states that something was changed, such as `Footer added` or `Fixed the footer`."""
    return _CLAIM.search(title) is not None


TITLE_MAX = 90
"""Maximum characters of a title."""


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters that ends with a sentence or a clause.

    A text that cannot be shortened in this way gives an empty string.
    """
    if len(text) <= limit:
        return text
    head = text[: limit + 1]
    ends = [end for _, end in sentences(head) if limit * 0.3 <= end < len(head.rstrip())]
    return head[: ends[-1]] if ends else complete_clauses(head, round(limit * 0.3))


def headline(text: str, limit: int = TITLE_MAX, code: Sequence[str] = ()) -> str:
    """Return a title in the style of a commit subject, or an empty string for a text without a short enough clause.

    Courtesies and the full stop are removed, and the first letter is capitalised. A title that is too long loses its
    parentheses, and then its last clauses. The texts in `code` are neither cut nor capitalised.
    """
    title = without_opener(strip_markdown(text)).rstrip(_LOOSE_ENDS)
    if len(title) > limit:
        masked = _PARENTHESIS.sub("", title)
        for span in code:
            masked = masked.replace(span, "\ue000" * len(span))
        end = len(shorten(masked, limit).rstrip(_LOOSE_ENDS))
        title = _PARENTHESIS.sub("", title)[:end]
    first = title.split(" ", 1)[0]
    is_word = first.isalpha() and first.islower() and not any(map(title.startswith, code))
    return title[:1].upper() + title[1:] if is_word else title


def without_opener(text: str) -> str:
    """Strip polite words from the start: `Ok, can you please add X` becomes `add X`."""
    while (opener := _OPENER.match(text)) and opener.end() < len(text):
        text = text[opener.end() :]
    return text


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control characters except line breaks and tabs, soft hyphens, zero-width characters, direction overrides, tags and
# other format characters, which can divide a word or carry a hidden message.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Characters that some scripts and emoji need, but that are invisible between ASCII characters and if repeated.
_JOINERS = "\u034f\u115f\u1160\u17b4\u17b5\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
UNUSUAL = f"[{_UNSEEN}{_SPACES}{_JOINERS}]".replace("\x00", "\x01")
"""Pattern for the characters that `visible` can change, except NUL. It is also valid in RE2."""
_REMOVED = re.compile(
    f"(?<=[!-~])[{_JOINERS}{_UNSEEN}]+(?=[!-~])|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f{_UNSEEN}]+|[{_UNSEEN}]"
)
_SPACE = re.compile(f"[{_SPACES}]")
_ASCII = dict.fromkeys([*range(0x09), *range(0x0E, 0x20), 0x7F])
_WORD = re.compile(r"[\w.-]+")


def without_ansi(text: str) -> str:
    """Return the text without terminal escapes, including truncated escapes."""
    return _ANSI.sub("", text).replace("\x1b", "") if "\x1b" in text else text


def readable(text: str) -> str:
    """Return the text with U+FFFD in place of lone surrogates, which UTF-8 and tokenizers cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def nfc(text: str) -> str:
    """Return the text in Unicode normalization form C.

    Programs write one name in different forms: an `ü` is one character, or a `u` with a combining mark as on macOS.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def visible(text: str) -> str:
    """Return the text as replies show it: without terminal escapes and invisible characters, and with plain spaces.

    Text is redacted in this form, because a character that is not shown could hide a secret from the rules.
    """
    plain = without_ansi(text)
    if plain.isascii():
        return plain.translate(_ASCII)
    return _SPACE.sub(" ", _REMOVED.sub("", plain))


def is_one_word(name: str, *, longest: int = 40) -> bool:
    """Return whether a name is a single word of at most `longest` characters, and therefore not a sentence.

    A word consists of letters, digits, `_`, `.` and `-`.
    """
    return len(name) <= longest and _WORD.fullmatch(name) is not None


def similar_names(name: str, known: Iterable[str], *, least: int = 75, limit: int = 3) -> list[str]:
    """Return the names with the most similar spelling, best first.

    Args:
        name: The name to compare.
        known: Names to choose from.
        least: Minimum similarity, 0 to 100.
        limit: Maximum number of names to return.
    """
    from rapidfuzz import fuzz, process  # Importing this takes 35 ms, and few commands need it.

    return [one for one, *_ in process.extract(name, list(known), scorer=fuzz.ratio, limit=limit, score_cutoff=least)]


_QUOTED = re.compile(r"“[^”]{2,}”")
_LEAD = re.compile(r"\A(?:The plan begins|The prompt begins): ")
_CHANGED = re.compile(r"(?<=”) Changed [\w./-]+.*\Z")
ASKED = ("Asked: ", "Asked while ", "Task given: ")
"""Beginnings of a sentence that repeats a prompt of the user."""
_MARK = re.compile(r'\A\s*(?:[-*+•]|\d{1,2}[.)]|#{1,6}|>|\||"{3})\s*')
_DULL = re.compile(
    r"\A(?:Plan(?: proposed)?: |Changed [\w./-]+|Edited [\w./-]+$|Committed: |Edit: |Tests: "
    r"|All (?:\d+ )?(?:tests|checks)\b)"
)
_ROW = re.compile(r"\A[^:;]{1,60}:(?: [^;]{1,24};){2,} [^;]{1,24}\Z")
"""Pattern for a row of a table. Its short cells are not understandable without the headings of the columns."""
_INTENTION = re.compile(
    r"""\A[“"]?
    (?:(?:ok|okay|now|next|first|then|so|great|good|perfect|sure|yes|done|actually|also|and|but)\b[,.!:;—–-]*\s*)*
    (?: (?:i|we)(?:['’]ll|\s(?:will|should|need\sto|want\sto|plan\sto))\b
    | (?:i['’]m|i\sam|we['’]re)\s(?:now\s)?\w+ing\b | let\s(?:me|us)\b | let['’]s\b | (?:going|about)\sto\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the start of a sentence in which an agent announces an action. A later sentence reports its result."""
_QUESTION = ("?", "?”", '?"')
_SHORTEST = 20
"""Minimum characters of a claim."""


def is_statement(text: str) -> bool:
    """Return False if an agent's sentence announces an action or asks the user a question, or else True."""
    return text.startswith(ASKED) or not (_INTENTION.match(text) or text.endswith(_QUESTION))


def sentences_of(text: str, *, whole: bool = True) -> Iterator[str]:
    """Yield the sentences of a Markdown text, without code blocks. With `whole`, labels and short ones are left out."""
    fenced = False
    for row in text.split("\n"):
        if row.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield from filter(is_complete_sentence if whole else None, _sentences(row))


def _sentences(row: str) -> Iterator[str]:
    """Remove the markup of a line, and yield its sentences. A quotation is never split."""
    plain = strip_markdown(_MARK.sub("", row))
    # Only the end of a quotation can end a sentence.
    masked = _QUOTED.sub(lambda found: "“" + "x" * (len(found[0]) - 3) + found[0][-2:], plain)
    for start, end in sentences(masked):
        yield _CHANGED.sub("", _LEAD.sub("", plain[start:end]))


def is_complete_sentence(text: str) -> bool:
    """Return False for a fragment, the row of a table, or a note about the work itself such as `Committed: …`."""
    return len(text) >= _SHORTEST and not text.endswith((":", "…")) and not (_DULL.match(text) or _ROW.match(text))


_LONG_WORD = re.compile(r"\w{4,}")
_REPEATED = 0.7
"""Minimum share of the long words of a text that another text must contain to state the same.

Only the first five letters of each word are compared.
"""


def states(text: str, other: str) -> bool:
    """Return whether a text contains most of the long words of another text."""
    words, others = ({word[:5].lower() for word in _LONG_WORD.findall(each)} for each in (text, other))
    return text == other or (bool(others) and len(words & others) >= _REPEATED * len(others))


def repeats(text: str, other: str) -> bool:
    """Return whether one of two texts states the other."""
    return states(text, other) or states(other, text)


_Part = TypeVar("_Part")


def is_path_pattern(path: str) -> bool:
    """Return whether a path can match several files, because it is a glob or ends with a slash."""
    return path.endswith("/") or any(sign in path for sign in "*?")


def path_fits(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, with slashes as separators. The comparison is case-sensitive.

    `*` and `?` match within a name. `**` matches any number of folders. A pattern without a leading slash may begin at
    any folder. A pattern with a final slash matches all files below that folder. A pattern never becomes a regular
    expression, so matching takes polynomial time.
    """
    names = (f"{pattern}**" if pattern.endswith("/") else pattern).split("/")
    return _fits(names if pattern.startswith("/") else ["**", *names], path.split("/"), "**", _name_fits)


def _name_fits(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda letter, sign: letter in {sign, "?"})


def _fits(pattern: Sequence[_Part], parts: Sequence[_Part], star: _Part, equal: Callable[[_Part, _Part], bool]) -> bool:
    """Return whether the parts match a pattern in which `star` matches any number of parts.

    After a mismatch, the function backtracks only to the last star. Its time is therefore at most proportional to the
    product of both lengths.
    """
    position, part, last_star, resumed = 0, 0, -1, 0
    while part < len(parts):
        if position < len(pattern) and pattern[position] == star:
            last_star, resumed = position, part
            position += 1
        elif position < len(pattern) and equal(pattern[position], parts[part]):
            position, part = position + 1, part + 1
        elif last_star >= 0:
            resumed += 1
            position, part = last_star + 1, resumed
        else:
            return False
    return all(sign == star for sign in pattern[position:])
