"""Reads the messages of a Claude.ai conversation into turns and notes."""

from collections.abc import Sequence

from ....core.conversation import Fact, Kind, Note, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..given import EMPTY, REPEATED, Given, unknown
from ..json_values import instant, listing, mapping, string
from ..marks import Mark, identity
from ..unrolled import TITLE_RANK, RowReader


class ClaudeAiReader(RowReader):
    """Reads one conversation."""

    def _record(self, record: Record, line: Line) -> Given:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        message = mapping(record.get("message"))
        mark = Mark(line.number, instant(message.get("created_at")), identity("", line.data))
        match string(message.get("sender")):
            case "human":
                return self._typed(message, mark) or EMPTY
            case "assistant":
                return self._said(message, mark) or EMPTY
            case sender:
                return unknown(f"sender {sender}")

    def _header(self, header: Record, line: int) -> Given:
        learn = self._facts.learn
        return [
            *learn(line, Fact.SESSION, string(header.get("uuid"))),
            *learn(line, Fact.TITLE, string(header.get("name")) or string(header.get("title")), rank=TITLE_RANK),
            *learn(line, Fact.MODEL, string(header.get("model"))),
        ] or REPEATED

    def _typed(self, message: Record, mark: Mark) -> Sequence[Turn | Note]:
        """What the person asked, with the names of what they added; the text of that is the program's."""
        added = [mapping(each) for name in ("attachments", "files") for each in listing(message.get(name))]
        names = dict.fromkeys(f"[file {clean(string(each.get('file_name')))}]" for each in added)
        asked = "\n".join(filter(None, [_text(message), *names]))
        pasted = [clean(string(each.get("extracted_content"))) for each in added]
        self._calls.clear()
        prompt = [mark.turn(Speaker.HUMAN, Kind.PROMPT, asked)] if asked else []
        return [*prompt, *(mark.injected(text, shorten=self._shorten) for text in pasted if text)]

    def _said(self, message: Record, mark: Mark) -> Sequence[Turn | Note]:
        blocks = [mapping(block) for block in listing(message.get("content"))]
        turns = [turn for block in blocks if (turn := self._block(block, mark)) is not None]
        text = _text(message)
        return turns or ([mark.turn(Speaker.ASSISTANT, Kind.PROSE, text, group=mark.record)] if text else [])

    def _block(self, block: Record, mark: Mark) -> Turn | None:
        kind, name = string(block.get("type")), string(block.get("name"))
        if kind == "tool_use":
            return self._calls.call(mark, string(block.get("id")) or name, name, block.get("input"), group=mark.record)
        if kind == "tool_result":
            text, failed = _shown(block.get("content")), block.get("is_error") is True
            return self._calls.result(mark, string(block.get("tool_use_id")) or name, text, failed=failed, tool=name)
        said_as = Kind.THINKING if kind == "thinking" else Kind.PROSE
        text = clean(string(block.get("thinking")) or string(block.get("text")))
        return mark.turn(Speaker.ASSISTANT, said_as, text, group=mark.record) if text else None


def _text(message: Record) -> str:
    """The text of a message's content, else what older exports have beside it."""
    return clean(_shown(message.get("content"))) or clean(string(message.get("text")))


def _shown(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (string(mapping(block).get("text")) for block in listing(content))))
