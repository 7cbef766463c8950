"""ChatGPT exports, with a tree of messages per conversation."""

import json
import zipfile
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats.chatgpt import ChatGpt, in_order
from palaver.core.conversation import Fact, Kind, Speaker

from ..container_files import contents, events, turn_tuples, turns
from ..reading import notes

KNOWN = ChatGpt()
AT = 1_790_000_000.25


def node(number: str, parent: str | None, role: str = "user", text: object = "", /, **more: Any) -> dict[str, Any]:
    content = (
        cast("dict[str, Any]", text) if isinstance(text, dict) else {"content_type": "text", "parts": [text or number]}
    )
    message: dict[str, Any] = {"id": number, "author": {"role": role}, "create_time": AT, "content": content, **more}
    return {"id": number, "parent": parent, "children": [], "message": message}


def conversation(*nodes: dict[str, Any], current: str = "", **more: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {each["id"]: each for each in (root, *nodes)}
    return {"conversation_id": "c1", "title": "Rounding", "mapping": mapping, "current_node": current, **more}


def export(path: Path, *conversations: object) -> Path:
    path.write_text(json.dumps(conversations))
    return path


def prompts(path: Path, *nodes: dict[str, Any], **more: Any) -> list[tuple[Speaker, Kind, str]]:
    (found,) = turns(KNOWN, export(path / "conversations.json", conversation(*nodes, **more))).values()
    return found


def test_a_conversation_is_read_message_by_message(tmp_path: Path) -> None:
    """A conversation yields prompts, thoughts, tool calls with results, and replies."""
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "VAT", "content": "per line?"}]}
    picture = {"content_type": "image_asset_pointer", "size_bytes": 4096}
    asked = {"content_type": "multimodal_text", "parts": [picture, "How is VAT rounded?"]}

    assert prompts(
        tmp_path,
        node("a", "root", "system", "You are helpful"),
        node("b", "a", "user", asked, metadata={"attachments": [{"name": "rates.csv"}]}),
        node("c", "b", "assistant", thoughts),
        node("d", "c", "assistant", {"content_type": "code", "text": "round(1.5)"}, recipient="python"),
        node("e", "d", "tool", {"content_type": "execution_output", "text": "2"}, author={"role": "tool"}),
        node("f", "e", "assistant", "Half up.", recipient="all"),
        node("g", "f", "assistant", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
    ) == [
        (Speaker.HUMAN, Kind.PROMPT, "[image, 4 KB]\n\nHow is VAT rounded?\n[file rates.csv]"),
        (Speaker.ASSISTANT, Kind.THINKING, "VAT\nper line?"),
        (Speaker.ASSISTANT, Kind.CALL, "python: round(1.5)"),
        (Speaker.TOOL, Kind.RESULT, "2"),
        (Speaker.ASSISTANT, Kind.PROSE, "Half up."),
    ]


def test_the_shown_branch_comes_last_and_the_others_are_abandoned(tmp_path: Path) -> None:
    """Edited prompts and regenerated answers create branches. The displayed branch comes last."""
    nodes = [node("a", "root"), node("new", "a"), node("newer", "new"), node("old", "a"), node("older", "old")]
    path = export(tmp_path / "conversations.json", conversation(*nodes, current="newer"))
    (data,) = contents(KNOWN, path).values()

    found = events(KNOWN, data)

    assert [text for _, _, text in turn_tuples(found)] == ["a", "old", "older", "new", "newer"]
    assert notes(found, Fact.REWOUND) == [(6, "4")]


def test_a_continued_conversation_only_gains_lines(tmp_path: Path) -> None:
    """A later export of a conversation only appends lines to the copy of an earlier export."""
    nodes = [node("a", "root"), node("b", "a", "assistant"), node("b2", "a", "assistant")]
    path = export(tmp_path / "conversations.json", conversation(*nodes, current="b"))
    (before,) = contents(KNOWN, path).values()
    export(path, conversation(*nodes, node("c", "b"), current="b"))
    (after,) = contents(KNOWN, path).values()

    assert after.startswith(before)
    assert after.count(b"\n") == before.count(b"\n") + 1


def test_the_header_gives_title_model_id_and_time(tmp_path: Path) -> None:
    """The header provides title, model, ID and time in seconds."""
    path = export(tmp_path / "x.json", conversation(node("a", "root"), default_model_slug="gpt", update_time=AT))
    (found,) = KNOWN.sessions(path)
    data = b"".join(found.lines())

    assert notes(events(KNOWN, data), Fact.TITLE) == [(1, "Rounding")]
    assert notes(events(KNOWN, data), Fact.MODEL) == [(1, "gpt")]
    assert KNOWN.identify(Path("x"), data).native_id == "c1"
    assert (found.archive_name, found.changed_at) == ("conversations/c1.jsonl", 1_790_000_000_250)


def test_exports_are_recognised_by_their_content(tmp_path: Path) -> None:
    """Lists, single conversations and zips with several files are exports. Other JSON and Claude.ai exports are not."""
    one = conversation(node("a", "root"))
    (tmp_path / "one.json").write_text(json.dumps(one))
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "claude.json").write_text('[{"chat_messages": []}]')
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as pack:
        for place in range(2):
            pack.writestr(f"conversations-00{place}.json", json.dumps([{**one, "conversation_id": f"c{place}"}]))

    assert {path.name: KNOWN.is_container(path) for path in tmp_path.iterdir()} == {
        "one.json": True,
        "other.json": False,
        "claude.json": False,
        "export.zip": True,
    }
    assert list(contents(KNOWN, tmp_path / "export.zip")) == ["conversations/c0.jsonl", "conversations/c1.jsonl"]
    assert len(contents(KNOWN, tmp_path / "one.json")) == 1


PARENTS = st.lists(st.integers(-1, 12), max_size=12)


@given(PARENTS, st.integers(0, 12))
def test_every_node_comes_once_whatever_the_graph(parents: list[int], current: int) -> None:
    """Every node occurs once, even with cycles, lost parents or several roots.

    In a tree, parents precede their children and the displayed branch comes last.
    """
    nodes = {str(number): {"parent": str(parent)} for number, parent in enumerate(parents)}

    order = [name for name, _ in in_order(nodes, str(current))]

    assert sorted(order) == sorted(nodes)
    if all(parent < number for number, parent in enumerate(parents)):
        assert all(order.index(str(p)) < order.index(str(n)) for n, p in enumerate(parents) if p >= 0)
        leaf = current < len(parents) and current not in parents
        assert not leaf or order[-1] == str(current)
