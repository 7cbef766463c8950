"""Environment of the HTML templates, and their filters: times, durations, counts and marked words."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from ..core.conversation import Milliseconds, current_day, show_day, show_instant, show_minute
from ..core.observation import ObservationType
from ..core.reports import DOLLAR, NanoDollars, dollars, encrypted_conversations, grouped, many, size
from ..core.usage_report import UsageRow
from ..search.query.relevance import key_words
from .markdown_html import inline

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent
"""Folder of the viewer, with its templates and static files."""
WEEK: Final = 7 * 86_400_000
"""Milliseconds from which a length in days says less than the dates: a session was resumed."""
MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
"""Short names of the months, January first."""
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_HEADING: Final = re.compile(r"(?<!\S)#{1,6}(?:\s+|(?=…|\.\.\.))")
_RULE: Final = re.compile(r"(?<!\S)(?:\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?)?|[-=*_]{3,})(?!\S)")
"""Line below the head of a table, or between paragraphs."""
_STARS: Final = re.compile(r"(<code>.*?</code>)|\*\*", re.DOTALL)
"""Code, or the mark of emphasis whose other mark is not in the same line."""
_TOKENS: Final = re.compile(r"\b\d{4,12}(?= tokens\b)")
_SOURCE: Final = re.compile(r" \(from the agent's [^()]+, line \d+\)\Z")
_ORIGINS: Final = {
    "human": "you",
    "assistant": "the agent",
    "document": "a document",
    "imported": "an imported file",
    "tool": "output of a tool",
    "external": "can repeat a web page or other external text",
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def compact(number: int) -> str:
    """Format a count with at most three digits: `950`, `12.3k`, `4.6M`."""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            amount = number / unit
            return f"{amount:.0f}{letter}" if amount >= 99.95 else f"{amount:.1f}{letter}"
    return str(number)


def duration(milliseconds: int | None) -> str:
    """Format a duration in its largest unit: `40 s`, `12 min`, `3 h`, `2 d`. Return an empty text for None."""
    if milliseconds is None or milliseconds < 0:
        return ""
    seconds = milliseconds // 1000
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def time_range(started: Milliseconds | None, ended: Milliseconds | None) -> Markup:
    """Return when something began, and how long it took or, from a week on, when it ended, as in a resumed session."""
    if started is None or ended is None:
        return when(started)
    if ended - started < WEEK:
        return Markup("{} · {}").format(when(started), duration(ended - started))
    return Markup("{} to {}").format(when(started), when(ended))


def day_name(at: Milliseconds | None) -> str:
    """Format the day of an instant for a heading: `Today`, `Tuesday, 3 Nov`, `3 Nov 2025`."""
    if at is None:
        return "Undated"
    day, today = _date(at), current_day()
    if day is None:
        return "Undated"
    if day in {today, today - timedelta(days=1)}:
        return "Today" if day == today else "Yesterday"
    if day.year == today.year:
        return f"{_DAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1]}"
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def when(at: Milliseconds | None) -> Markup:
    """Return a `time` element: `14:02` today, `3 Nov` this year, `3 Nov 2025` before. The title has the full time."""
    if at is None or (day := _date(at)) is None:
        return Markup('<span class="muted">undated</span>')
    full, today = show_minute(at), current_day()
    if day == today:
        text = full[11:]
    elif day == today - timedelta(days=1):
        text = f"Yesterday {full[11:]}"
    else:
        text = f"{day.day} {MONTHS[day.month - 1]}" + ("" if day.year == today.year else f" {day.year}")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(show_instant(at), full, text)


def token_counts(text: str) -> str:
    """Return a notice of an agent with separators in its numbers of tokens."""
    return _TOKENS.sub(lambda count: grouped(int(count[0])), text)


def titled(text: str) -> Markup:
    """Return a title with its emphasis and code as HTML, without the marks of Markdown headings."""
    return inline(_HEADING.sub("", text))


def stated(text: str) -> Markup:
    """Return a fact of a card as HTML, without the source that it names. Pages link to the line."""
    return inline(_SOURCE.sub("", text))


def marked(text: str, words: Sequence[str]) -> Markup:
    """Return an excerpt of Markdown as a line of HTML in which the words are marked, ignoring case.

    Rules of tables and paragraphs, and marks of emphasis that begins or ends outside, are left out. Words such as "the"
    are marked only if there are no others. Words are escaped before they are searched, as the text is, and no word is
    marked within a tag or an entity.
    """
    is_table = any("|" in rule[0] for rule in _RULE.finditer(text))
    plain = _RULE.sub(" ", text)
    html = inline(_HEADING.sub("", plain.replace(" | ", " ") if is_table else plain))
    html = Markup(_STARS.sub(r"\1", str(html)))  # noqa: S704 - the line is clean, and only asterisks were removed
    used = [word for word in words if key_words(word)] or words
    longest_first = sorted((str(escape(word)) for word in used if word), key=len, reverse=True)
    if not longest_first:
        return html
    pattern = re.compile("|".join(["<[^>]*>", *map(re.escape, longest_first), "&[^;]*;"]), re.IGNORECASE)
    return Markup(pattern.sub(_mark, html))  # noqa: S704 - the line is clean, and only marks were added


def file_name(path: str) -> str:
    """Return the last two parts of a path, with which a list shows a file."""
    return "/".join(path.replace("\\", "/").rstrip("/").split("/")[-2:])


def price(cost: NanoDollars) -> str:
    """Format an amount of money with two decimals. Less than a cent is shown as such."""
    return "under $0.01" if 0 < cost < DOLLAR // 100 else dollars(cost)


def row_price(row: UsageRow) -> str:
    """Format the list price of a row of usage. A price that is at least the amount ends with `+`."""
    if row.unpriced_tokens and not row.cost:
        return "unknown"
    if row.is_minimum:
        return f"{price(max(row.cost, 1))}+"
    return price(row.cost)


def type_name(name: str) -> str:
    """Return the name that people read for a type of observations or memories, or for a kind of items."""
    words = name.replace("_", " ").replace("-", " ")
    return ObservationType(name).label if name in set(ObservationType) else f"{words[:1].upper()}{words[1:]}"


def namespace_name(namespace: str) -> str:
    """Return the name that people read for the namespace of a memory."""
    return "all projects" if namespace == "global" else namespace.removeprefix("project:")


def origin_name(origin: str) -> str:
    """Return the author of a text, or its least trusted source, by its origin."""
    return _ORIGINS.get(str(origin), str(origin))


def project_name(path: str) -> str:
    """Return the last part of a project's path or name."""
    return path.rstrip("/").rpartition("/")[2] or path


def _mark(match: re.Match[str]) -> str:
    return match[0] if match[0][0] in "<&" and match[0][-1] in ">;" else f"<mark>{match[0]}</mark>"


def _date(at: Milliseconds) -> date | None:
    day = show_day(at)
    return None if day == "undated" else date.fromisoformat(day)


FILTERS: Final[Mapping[str, Any]] = {
    "compact": compact,
    "day": show_day,
    "day_name": day_name,
    "duration": duration,
    "encrypted_conversations": encrypted_conversations,
    "file_name": file_name,
    "grouped": grouped,
    "inline": inline,
    "many": many,
    "marked": marked,
    "minute": show_minute,
    "namespace_name": namespace_name,
    "origin_name": origin_name,
    "price": price,
    "row_price": row_price,
    "project_name": project_name,
    "size": size,
    "stated": stated,
    "time_range": time_range,
    "titled": titled,
    "token_counts": token_counts,
    "type_name": type_name,
    "when": when,
}


def html_environment() -> "Environment":
    """Return the environment of the HTML templates. All values are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment
