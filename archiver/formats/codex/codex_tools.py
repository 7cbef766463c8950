"""What Codex's tools answered: their text, and whether they failed."""

import re
from typing import Any

import orjson
from msgspec import Struct

from ...files.clipping import clean
from ...files.lines import Record
from ..actions import command_line
from ..json_values import listing, mapping, string

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


class Answer(Struct, frozen=True):
    """A result's text, and whether it is a failure."""

    text: str
    failed: bool = False


def answer(output: object) -> Answer:
    """The answer in a result of any version: text with a header, JSON with an exit code, blocks, or an object."""
    details = _details(output)
    if details:
        code = mapping(details.get("metadata")).get("exit_code")
        failed = details.get("success") is False or code not in (None, 0)
        return _answer(content_text(details.get("content")) or content_text(details.get("output")), code, failed)
    text = content_text(output)
    header = _HEADER.match(text)
    code = _CODE.search(header[0]) if header else None
    body = text[header.end() :] if header else text
    number = int(code[1]) if code else None
    return _answer(body, number, number not in (None, 0) or text.startswith(_FAILURES))


def command_answer(payload: Record) -> Answer:
    """What a command printed, from the event that ends it."""
    printed = [string(payload.get("stdout")), string(payload.get("stderr"))]
    code = payload.get("exit_code")
    body = string(payload.get("aggregated_output")) or "\n".join(filter(None, printed))
    shown = f"$ {command_line(payload.get('command'))}\n{body}"
    return _answer(shown, code, code not in (None, 0) or payload.get("status") in ("failed", "declined"))


def mcp_answer(payload: Record) -> Answer:
    """What a tool of a server answered, from the event or the item that ends the call."""
    result = mapping(payload.get("result"))
    fault = content_text(result.get("Err")) or string(mapping(payload.get("error")).get("message"))
    result = mapping(result.get("Ok")) or result
    return Answer(fault or clean(content_text(result.get("content"))), bool(fault) or result.get("isError") is True)


def found_on_web(payload: Record) -> str:
    """Titles and addresses of what a search found."""
    results = map(mapping, listing(payload.get("results")))
    return "\n".join(" ".join(filter(None, (string(each.get("title")), string(each.get("url"))))) for each in results)


def offered_tools(payload: Record) -> str:
    """The names of the tools that a search for tools found; their descriptions fill pages."""
    groups = [mapping(group) for group in listing(payload.get("tools"))]
    return "\n".join(
        ", ".join(string(mapping(tool).get("name")) for tool in [group, *listing(group.get("tools"))])
        for group in groups
    )


def searched(payload: Record) -> str:
    """What a web search was for: a query, a page, or a text in a page."""
    action = mapping(payload.get("action"))
    queries = [string(query) for query in listing(action.get("queries"))]
    asked = [
        string(action.get("query")) or " | ".join(queries),
        string(action.get("pattern")),
        string(action.get("url")),
    ]
    return " ".join(filter(None, asked))


def review(output: Record) -> str:
    """A review as text: its verdict and its findings."""
    lines = [string(output.get("overall_explanation"))]
    for finding in map(mapping, listing(output.get("findings"))):
        place = string(mapping(finding.get("code_location")).get("absolute_file_path"))
        lines.append(f"- {string(finding.get('title'))} ({place})\n  {string(finding.get('body'))}")
    return "\n".join(filter(None, lines))


def content_text(content: object) -> str:
    """The text of a message's or a result's content; pictures as their type and size."""
    if isinstance(content, str):
        return content
    blocks: list[Any] = listing(content) or [content]
    return "\n".join(filter(None, (_block_text(mapping(block)) for block in blocks)))


def picture(address: str) -> str:
    """A picture by its type and size, or by its address."""
    kind, found, data = address.removeprefix("data:").partition(";base64,")
    return f"[{kind}, {len(data) * 3 // 4096} KB]" if found else f"[{address or 'picture'}]"


def _block_text(block: Record) -> str:
    kind = string(block.get("type"))
    if kind in {"input_image", "image", "local_image"}:
        address = block.get("image_url") or block.get("url") or block.get("path")
        return picture(string(address)) if address else ""
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


def _answer(body: str, code: object, failed: bool) -> Answer:
    body = clean(body)
    return Answer(f"Exit code {code}\n{body}".strip() if code not in (None, 0) else body, failed)
