"""Authors of texts that Codex records with the role `user`, and its tool results as readable text.

The author is the user or the program itself. Tool results have a flag for failed calls.
"""

import re
from collections.abc import Iterator

import orjson
from msgspec import Struct

from ..lines import Record, clean
from .json_values import command_line, joined_text, listing, mapping, mappings, media_label, string
from .transcript_format import TAGS

_TAG = re.compile(r"<([a-z][a-z0-9_-]*)[\s>]")
_ENVELOPES = TAGS | {"heartbeat", "permissions", "skill"}
_INSTRUCTIONS = "# AGENTS.md instructions"
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$\n?", re.MULTILINE)
_HEADING = r"^(?:# \S[^\n]*:|## (?:User )?Comment\b[^\n]*)[ \t]*$"
_COMMENT = re.compile(rf"^Comment:[ \t]*\n?(.*?)(?={_HEADING}|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT_HEADING = re.compile(_HEADING, re.MULTILINE)
_REMARKS = re.compile(r"^# .*\b(?:comments|annotations|findings):", re.MULTILINE | re.IGNORECASE)
_PLACE = re.compile(r"^(File|Page URL|Lines?): *(.+?) *$", re.MULTILINE)
_PICTURE = re.compile(r"</?image(?: [^>]*)?>")
_SHELL = re.compile(
    r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(?:<result>\n?(.*?)\n?</result>)?", re.DOTALL
)


def is_envelope(text: str, *, known_only: bool) -> bool:
    """Return whether Codex wrote a text: it is enclosed in tags of Codex, or contains the instructions of AGENTS.md.

    With `known_only`, only known tags count. Otherwise, any tag with an underscore counts too, because HTML tags never
    contain underscores. Set `known_only` for the text of an event, because users typed most of these texts.
    """
    text = text.strip()
    if text.startswith(_INSTRUCTIONS):
        return True
    tag = _TAG.match(text)
    if tag is None:
        return False
    closing = text[text.rfind("</") :]
    closed = closing.startswith(f"</{tag[1]}") and closing.endswith(">")
    return closed and (tag[1] in _ENVELOPES or ("_" in tag[1] and not known_only))


def request(text: str) -> str:
    """Return what the user typed, without the file list and the editor state that Codex inserted before it.

    The user typed the text below the last heading `## My request`, and the comments on lines of code above the heading.
    Remarks of an unknown form above an empty request are returned as they are, so that no prompt is lost.
    """
    found = [*_REQUEST.finditer(text)] if text.startswith(("#", "<")) else []
    if not found:
        return text
    above, below = text[: found[-1].start()], text[found[-1].end() :].strip()
    typed = "\n\n".join(filter(None, [*_comments(above), below]))
    return typed or (above.strip() if _REMARKS.search(above) else "")


def _comments(text: str) -> Iterator[str]:
    """Yield each comment that the user typed on a line of code or a web page, with the place in brackets."""
    start = 0
    for found in _COMMENT.finditer(text):
        headings = [*_COMMENT_HEADING.finditer(text, start, found.start())]
        about = text[headings[-1].end() if headings else start : found.start()]
        place = ", ".join(
            value if name in {"File", "Page URL"} else f"{name.lower()} {value}"
            for name, value in _PLACE.findall(about)
        )
        start = found.end()
        if comment := found[1].strip():
            yield f"{comment} [{place}]" if place else comment


def without_picture_tags(text: str) -> str:
    """Return a text without the tags that mark the positions of pictures."""
    return _PICTURE.sub("", text).strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """Return a shell command that the user ran, with its output. Return None for other texts."""
    found = _SHELL.match(text.strip())
    return (found[1].strip(), (found[2] or "").strip()) if found else None


_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process (?:exited|running)|Original token count|Total output lines|Exit code"
    r"|Script \w+)[^\n]*\n)+(?:Output:\n?)?"
)
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)[ \t]*$", re.MULTILINE)
_FAILURES = (
    "Script failed",
    "aborted",
    "apply_patch verification failed",
    "execution error",
    "exec_command failed",
    "failed to parse",
    "unsupported call",
)


class ToolOutput(Struct, frozen=True):
    """Text that a tool returned, and whether the tool failed."""

    text: str
    failed: bool = False


def output_of(output: object) -> ToolOutput:
    """Return the text of a tool's output, and whether the tool failed.

    Depending on the version of Codex, the output is text with a header, JSON with an exit code, a list of blocks, or an
    object.
    """
    details = _details(output)
    if details:
        code = mapping(details.get("metadata")).get("exit_code")
        failed = details.get("success") is False or code not in (None, 0)
        return _with_code(content_text(details.get("content")) or content_text(details.get("output")), code, failed)
    text = content_text(output)
    header = _HEADER.match(text)
    code = _CODE.search(header[0]) if header else None
    body = text[header.end() :] if header else text
    number = int(code[1]) if code else None
    return _with_code(body, number, number not in (None, 0) or text.startswith(_FAILURES))


def command_output(payload: Record) -> ToolOutput:
    """Return the output of a command from the event that ends the command."""
    printed = [string(payload.get("stdout")), string(payload.get("stderr"))]
    code = payload.get("exit_code")
    body = string(payload.get("aggregated_output")) or "\n".join(filter(None, printed))
    shown = f"$ {command_line(payload.get('command'))}\n{body}"
    return _with_code(shown, code, code not in (None, 0) or payload.get("status") in ("failed", "declined"))


def mcp_output(payload: Record) -> ToolOutput:
    """Return the output of an MCP tool from the event or the item that ends the call."""
    result = mapping(payload.get("result"))
    fault = content_text(result.get("Err")) or string(mapping(payload.get("error")).get("message"))
    result = mapping(result.get("Ok")) or result
    return ToolOutput(fault or clean(content_text(result.get("content"))), bool(fault) or result.get("isError") is True)


def web_results(payload: Record) -> str:
    """Return the titles and URLs of web search results."""
    results = mappings(payload.get("results"))
    return "\n".join(" ".join(filter(None, (string(each.get("title")), string(each.get("url"))))) for each in results)


def tool_search_results(payload: Record) -> str:
    """Return the names of the tools that a tool search found."""
    return "\n".join(
        ", ".join(string(tool.get("name")) for tool in [group, *mappings(group.get("tools"))])
        for group in mappings(payload.get("tools"))
    )


def search_terms(payload: Record) -> str:
    """Return the query, the text pattern and the URL of a web search. Omit missing values."""
    action = mapping(payload.get("action"))
    queries = " | ".join(string(query) for query in listing(action.get("queries")))
    asked = [string(action.get("query")) or queries, string(action.get("pattern")), string(action.get("url"))]
    return " ".join(filter(None, asked))


def review_text(output: Record) -> str:
    """Return the verdict and the findings of a review."""
    lines = [string(output.get("overall_explanation"))]
    for finding in mappings(output.get("findings")):
        path = string(mapping(finding.get("code_location")).get("absolute_file_path"))
        lines.append(f"- {string(finding.get('title'))} ({path})\n  {string(finding.get('body'))}")
    return "\n".join(filter(None, lines))


def content_text(content: object) -> str:
    """Return the text of a message or a result, with each picture replaced by its type and size."""
    return joined_text(content, _block_text)


def picture_label(address: str) -> str:
    """Return a label that replaces a picture: its type and size, or its URL."""
    kind, found, data = address.removeprefix("data:").partition(";base64,")
    return media_label(kind, data) if found else f"[{address or 'picture'}]"


def _block_text(block: Record) -> str:
    kind = string(block.get("type"))
    if kind in {"input_image", "image", "local_image"}:
        address = block.get("image_url") or block.get("url") or block.get("path")
        return picture_label(string(address)) if address else ""
    return string(block.get("text"))


def _details(output: object) -> Record:
    if isinstance(output, str) and output.startswith('{"'):
        try:
            found = mapping(orjson.loads(output))
        except orjson.JSONDecodeError:
            return {}
        return found if "output" in found and "metadata" in found else {}
    found = mapping(output)
    return found if "content" in found or "output" in found else {}


def _with_code(body: str, code: object, failed: bool) -> ToolOutput:
    body = clean(body)
    return ToolOutput(f"Exit code {code}\n{body}".strip() if code not in (None, 0) else body, failed)
