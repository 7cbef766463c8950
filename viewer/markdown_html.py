"""Safe HTML from the Markdown and the code of a transcript.

markdown-it escapes raw HTML, and nh3 removes everything that is not on a list of elements and attributes. No element of
the result loads anything: pictures become links, and links without `http`, `https` or `mailto` become text.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import nh3
from markupsafe import Markup, escape

from ..archiver.lines import is_media_label
from ..core.text import readable, visible, without_tag_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from pygments.formatter import Formatter
    from pygments.lexer import Lexer

TEXT_MAX: Final = 20_000
"""Maximum characters of a text that is rendered as Markdown. The worst text of this length takes 0.23 s."""
CODE_MAX: Final = 20_000
"""Maximum characters of a block of code that is highlighted."""
_CACHED: Final = 500
"""Maximum number of rendered texts in the cache."""
_TAGS: Final = frozenset(
    "a blockquote br code del em h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul".split()
)
_INLINE: Final = frozenset("code em strong".split())
_ATTRIBUTES: Final = {"a": {"href"}, "span": {"class"}, "ol": {"start"}, "td": {"class"}, "th": {"class"}}
_LINK: Final = re.compile(r"(?:https?://[^/\\]|mailto:)", re.IGNORECASE)
_CLASS: Final = re.compile(r"[a-z0-9]{1,3}")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_MARKDOWN: Final = re.compile(r"^(?:#{1,4} |```)", re.MULTILINE)
"""Pattern for prompts that were written as Markdown. Lists and tables are readable as they were typed."""


def markdown(text: str) -> Markup:
    """Return a text as HTML. The part after `TEXT_MAX` characters is shown as plain text."""
    return _render(text)


def inline(text: str) -> Markup:
    """Return one line with its emphasis and code as HTML. Links become text, so that a link can contain the line."""
    html = nh3.clean(_parser().renderInline(_plain(text[:TEXT_MAX])), tags=set(_INLINE), attributes={})
    return Markup(html) + text[TEXT_MAX:]  # noqa: S704 - nh3 cleaned it


def prompt(text: str) -> Markup:
    """Return a prompt as HTML. A prompt is shown as it was typed, unless it contains Markdown.

    Lines with only a tag, such as `<planning_context>`, are left out.
    """
    text = without_tag_lines(text)
    if _MARKDOWN.search(text):
        return markdown(text)
    return Markup('<p class="typed">{}</p>').format(_plain(text))


def without_labels(text: str) -> str:
    """Return a prompt without the labels that the archived text contains in place of pictures."""
    return "\n".join(line for line in text.split("\n") if not is_picture(line)).strip()


def is_picture(line: str) -> bool:
    """Return whether a line of a prompt is the label of a picture."""
    return line.startswith("[image") and is_media_label(line)


def code(text: str, language: str) -> Markup:
    """Return the highlighted code of a language, without an element around it. Long code is escaped only."""
    lexer = _lexer(language) if len(text) <= CODE_MAX else None
    if lexer is None:
        return escape(_plain(text))
    from pygments import highlight

    return Markup(highlight(_plain(text), lexer, _formatter()).rstrip("\n"))  # noqa: S704 - Pygments escapes the code


def forget_rendered() -> None:
    """Empty the cache of rendered texts."""
    _render.cache_clear()


@lru_cache(_CACHED)
def _render(text: str) -> Markup:
    plain = _plain(text)
    html = _cleaner().clean(_parser().render(plain[:TEXT_MAX]))
    cut = Markup('<p class="typed">{}</p>').format(plain[TEXT_MAX:]) if len(plain) > TEXT_MAX else Markup("")
    # The keyboard scrolls only elements that can have the focus.
    scrollable = html.replace("<pre>", '<pre tabindex="0">')
    return Markup(scrollable) + cut  # noqa: S704 - nh3 cleaned it


def _plain(text: str) -> str:
    """Return a text without terminal escapes and invisible characters, which could hide what it says."""
    return visible(readable(text)).replace("\0", "")


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, or None to remove the attribute.

    nh3 lets links without a scheme pass. `//host` leads to another host, and a relative path to no page of ours.
    """
    if (tag, name) == ("a", "href"):
        return value if _LINK.match(value) else None
    if name == "class":
        return value if _CLASS.fullmatch(value) else None
    return value if name == "rel" or (name == "start" and value.isdigit()) else None


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        attribute_filter=_attribute,
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https", "mailto"},
    )


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _fenced}).enable(["table", "strikethrough"])
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("strong_open", _strong)
    parser.add_render_rule("strong_close", _strong)
    return parser


def _heading(_renderer: "RendererHTML", tokens: Sequence["Token"], index: int, *_: Any) -> str:
    """Render a heading below those of the page, which has levels 1 and 2."""
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 2)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


def _strong(_renderer: "RendererHTML", tokens: Sequence["Token"], index: int, *_: Any) -> str:
    """Render strong text. Underscores are part of a name, as in `__main__.py`: nearly nobody marks text with them."""
    token = tokens[index]
    return "__" if token.markup == "__" else "<strong>" if token.nesting == 1 else "</strong>"


def _image(_renderer: "RendererHTML", tokens: Sequence["Token"], index: int, *_: Any) -> str:
    """Render a picture of another host as a link."""
    token = tokens[index]
    target = str(token.attrs.get("src", ""))
    return f'<a href="{escape(target)}">{escape(token.content or target)}</a>'


def _fenced(text: str, language: str, _: str) -> str:
    return f"<pre><code>{code(text, language)}</code></pre>"


@cache
def _lexer(language: str) -> "Lexer | None":
    """Return the lexer of a language, or None for an unknown language."""
    if not _LANGUAGE.fullmatch(language):
        return None
    from pygments import lexers
    from pygments.util import ClassNotFound

    try:
        lexer: Lexer = lexers.get_lexer_by_name(language)  # pyright: ignore[reportUnknownMemberType]
    except ClassNotFound:
        return None
    return lexer


@cache
def _formatter() -> "Formatter[str]":
    from pygments.formatters import HtmlFormatter

    formatter: Formatter[str] = HtmlFormatter(nowrap=True)
    return formatter
