"""Conversion of Codex's tool results to readable text, with a flag for failed calls."""

import re

import orjson
from msgspec import Struct

from ...files.clipping import clean
from ...files.lines import Record
from ..json_values import joined_text, listing, mapping, mappings, media_label, string
from ..tool_calls import command_line

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
