"""Claude.ai exports, with a list of messages per conversation."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.claude_ai import ClaudeAi
from palaver.core.conversation import Fact, Kind, Speaker

from ..container_files import contents, events, turn_tuples, turns
from ..reading import notes, unaccounted

KNOWN = ClaudeAi()
AT = "2026-08-01T10:00:00Z"


def message(sender: str, text: str = "", *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": f"{sender}-{text}", "sender": sender, "text": text, "content": content, "created_at": AT, **more}


def export(path: Path, *messages: object, **more: Any) -> Path:
    path.write_text(json.dumps([{"uuid": "u1", "name": "Shipping", "chat_messages": messages, **more}]))
    return path


def test_a_conversation_is_read_message_by_message(tmp_path: Path) -> None:
    """Text is read from content blocks or, in older exports, from a separate field."""
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "tool_use", "id": "t", "name": "web_search", "input": {"query": "carriers"}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "DHL"}]},
        {"type": "text", "text": "DHL ships fastest."},
        {"type": "token_budget"},
    ]
    again = message("human", "", {"type": "text", "text": "Sure?"}), message("assistant", "Yes.")
    path = export(tmp_path / "a.json", message("human", "Which carrier?"), message("assistant", "", *blocks), *again)

    assert turns(KNOWN, path) == {
        "conversations/u1.jsonl": [
            (Speaker.HUMAN, Kind.PROMPT, "Which carrier?"),
            (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
            (Speaker.ASSISTANT, Kind.CALL, "web_search: query=carriers"),
            (Speaker.TOOL, Kind.RESULT, "DHL"),
            (Speaker.ASSISTANT, Kind.PROSE, "DHL ships fastest."),
            (Speaker.HUMAN, Kind.PROMPT, "Sure?"),
            (Speaker.ASSISTANT, Kind.PROSE, "Yes."),
        ]
    }


def test_a_prompt_names_its_attachments(tmp_path: Path) -> None:
    """A prompt contains the names of its attachments. Their text is injected."""
    added = {"attachments": [{"file_name": "a.csv", "extracted_content": "1,2"}], "files": [{"file_name": "b.png"}]}
    path = export(tmp_path / "conversations.json", message("human", "Sum it", **added))

    assert list(turns(KNOWN, path).values()) == [
        [
            (Speaker.HUMAN, Kind.PROMPT, "Sum it\n[file a.csv]\n[file b.png]"),
            (Speaker.HOST, Kind.INJECTED, "1,2"),
        ]
    ]


def test_edited_prompts_and_regenerated_answers_are_branches(tmp_path: Path) -> None:
    """The branch of the last message is active, also if the first prompt was edited. Other branches are rewound."""

    def said(name: str, parent: str) -> dict[str, Any]:
        sender = "assistant" if name.startswith("re:") else "human"
        return message(sender, name, uuid=name, parent_message_uuid=parent)

    cases: dict[str, tuple[list[dict[str, Any]], list[tuple[int, str]]]] = {
        "no branch": ([said("a", "root"), said("re:a", "a"), said("b", "re:a"), said("re:b", "b")], []),
        "edited": (
            [said("a", "root"), said("re:a", "a"), said("b", "re:a"), said("re:b", "b"), said("c", "re:a")],
            [(6, "4")],
        ),
        "edited first": ([said("a", "root"), said("re:a", "a"), said("b", "root"), said("re:b", "b")], [(4, "2")]),
        "regenerated": ([said("a", "root"), said("re:a", "a"), said("re:2", "a"), said("b", "re:2")], [(4, "3")]),
        "no parents": ([message("human", "a"), message("assistant", "re:a"), message("human", "b")], []),
    }
    for name, (messages, rewinds) in cases.items():
        (data,) = contents(KNOWN, export(tmp_path / "a.json", *messages)).values()
        assert notes(events(KNOWN, data), Fact.REWOUND) == rewinds, name


def test_an_empty_conversation_is_kept_without_events(tmp_path: Path) -> None:
    """A conversation without ID and messages is identified by its name and time, and yields no events."""
    (data,) = contents(KNOWN, export(tmp_path / "a.json", uuid=None, name="", created_at=AT)).values()

    assert turn_tuples(events(KNOWN, data)) == []
    assert unaccounted(KNOWN, data) == {}


def test_the_header_gives_title_id_and_time(tmp_path: Path) -> None:
    """The header provides title, ID and the time of the last change."""
    (found,) = KNOWN.sessions(export(tmp_path / "a.json", updated_at=AT))
    data = b"".join(found.lines())

    assert notes(events(KNOWN, data), Fact.TITLE) == [(1, "Shipping")]
    assert KNOWN.identify(Path("x"), data).native_id == "u1"
    assert found.changed_at == 1_785_578_400_000


@pytest.mark.parametrize("content", ['{"chat_messages": []}', "[]", "", "{", '[{"mapping": {}}]'])
def test_files_of_other_services_are_not_exports(tmp_path: Path, content: str) -> None:
    """Files of other services, broken files and empty files are not exports."""
    (tmp_path / "a.json").write_text(content)

    assert KNOWN.is_container(tmp_path / "a.json") == ("chat_messages" in content)
    assert not KNOWN.is_container(tmp_path / "a.txt")
