"""Reads the messages of a ChatGPT conversation into turns and notes."""

from collections.abc import Iterable, Iterator, Sequence

from ....core.conversation import Fact, Kind, Note, Session, Skipped, Speaker, Turn
from ...files.clipping import clean
from ...files.lines import Line, Record
from ..branches import Tree
from ..given import CONTEXT, EMPTY, REPEATED, Given, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Mark, identity
from ..unrolled import TITLE_RANK, RowReader

_INSTRUCTIONS = {"user_editable_context", "model_editable_context", "reasoning_recap"}


class ChatGptReader(RowReader):
    """Reads one conversation."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree = Tree()

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; at the end it is known which branches were left."""
        return super().read(self._watched(lines))

    def _watched(self, lines: Iterable[Line]) -> Iterator[Line]:
        for count, line in enumerate(lines):
            self._tree.partial = self._tree.partial or (count == 0 and line.number > 1)
            yield line

    def _left(self) -> Sequence[Note]:
        return self._tree.left()

    def _record(self, record: Record, line: Line) -> Given:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        node, message = string(record.get("id")), mapping(record.get("message"))
        self._tree.grow(node, string(record.get("parent")))
        if not message:
            return EMPTY
        mark = Mark(line.number, instant(message.get("create_time")), identity("", line.data))
        given = self._message(message, mark, node, string(record.get("parent")))
        if not isinstance(given, str):
            self._tree.tell(node, line.number)
        return given

    def _header(self, header: Record, line: int) -> Given:
        learn = self._facts.learn
        return [
            *learn(line, Fact.SESSION, string(header.get("conversation_id")) or string(header.get("id"))),
            *learn(line, Fact.TITLE, string(header.get("title")), rank=TITLE_RANK),
            *learn(line, Fact.MODEL, string(header.get("default_model_slug"))),
        ] or REPEATED

    def _message(self, message: Record, mark: Mark, node: str, parent: str) -> Given:
        content, about = mapping(message.get("content")), mapping(message.get("metadata"))
        kind, role = string(content.get("content_type")), string(mapping(message.get("author")).get("role"))
        hidden = about.get("is_visually_hidden_from_conversation") is True
        if hidden or kind in _INSTRUCTIONS or role == "system":
            return CONTEXT
        text = clean(_text(content))
        if role == "user":
            text = "\n".join(filter(None, [text, *map(_attached, listing(about.get("attachments")))]))
        if not text:
            return EMPTY
        model = self._facts.learn(mark.line, Fact.MODEL, string(about.get("model_slug")))
        match role:
            case "user":
                self._calls.clear()
                return [mark.turn(Speaker.HUMAN, Kind.PROMPT, text), *self._facts.place(mark.line)]
            case "assistant":
                return [self._reply(message, kind, text, mark, node), *model]
            case "tool":
                name = string(mapping(message.get("author")).get("name"))
                return [self._calls.result(mark, parent, text, failed=kind == "system_error", tool=name)]
            case _:
                return unknown(f"role {role}")

    def _reply(self, message: Record, kind: str, text: str, mark: Mark, node: str) -> Turn:
        to = string(message.get("recipient"))
        if kind == "system_error":
            return mark.injected(text, shorten=self._shorten, failed=True)
        if kind == "thoughts" or string(message.get("channel")) == "analysis":
            return mark.turn(Speaker.ASSISTANT, Kind.THINKING, text)
        if to not in {"", "all"}:
            return self._calls.call(mark, node, to, text)
        return mark.turn(Speaker.ASSISTANT, Kind.PROSE, text)


def _text(content: Record) -> str:
    parts = [*map(_part, listing(content.get("parts"))), *map(_thought, listing(content.get("thoughts")))]
    rest = [string(content.get(name)) for name in ("title", "url", "text", "result", "name")]
    return "\n\n".join(filter(None, [*parts, "\n".join(filter(None, rest))]))


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    told = mapping(part)
    if text := string(told.get("text")):
        return text
    kind = string(told.get("content_type")).removesuffix("_asset_pointer")
    return f"[{kind}, {whole(told.get('size_bytes')) // 1024} KB]" if kind else ""


def _thought(thought: object) -> str:
    told = mapping(thought)
    return "\n".join(filter(None, [string(told.get("summary")), string(told.get("content"))]))


def _attached(attachment: object) -> str:
    name = string(mapping(attachment).get("name"))
    return f"[file {clean(name)}]" if name else ""
