"""Kimi Code journals: authors, tool calls, and locations of transcripts."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats import Event
from palaver.archiver.formats.kimi_code import KimiCode
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Fact, Kind, Session, SessionKind, Speaker

from .. import reading
from ..reading import notes, skipped

KIMI = KimiCode()
TIME = 1785612812819
HEADER = {"type": "metadata", "protocol_version": "1.4", "created_at": TIME}


def record(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "time": TIME, **fields}


def prompt(text: str, kind: str = "turn.prompt", origin: str = "user") -> dict[str, Any]:
    return record(kind, input=[{"type": "text", "text": text}], origin={"kind": origin})


def context(text: str, origin: str = "user") -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "origin": {"kind": origin}}
    return record("context.append_message", message=message)


def loop_event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return record("context.append_loop_event", event={"type": kind, "stepUuid": "step", **fields})


def call(name: str, **args: Any) -> dict[str, Any]:
    return loop_event("tool.call", toolCallId=f"{name}_0", name=name, args=args)


def tool_result(name: str, **result: Any) -> dict[str, Any]:
    return loop_event("tool.result", toolCallId=f"{name}_0", result=result)


def events(*records: object) -> list[Event]:
    return reading.events(KIMI, HEADER, *records)


def summary(*records: object) -> list[tuple[int, Speaker, Kind, str]]:
    """Return the line, the speaker, the kind and the text of each turn."""
    return [(turn.line, turn.speaker, turn.kind, turn.text) for turn in reading.turns(KIMI, HEADER, *records)]


def test_a_prompt_in_the_context_repeats_the_sent_prompt() -> None:
    """A context record repeats its sent prompt. Equal text that is sent again is another prompt."""
    records = (prompt("hi"), context("hi"), prompt("hi"), context("hi"))

    assert summary(*records) == [(2, Speaker.HUMAN, Kind.PROMPT, "hi"), (4, Speaker.HUMAN, Kind.PROMPT, "hi")]
    assert skipped(events(*records)) == [(1, "bookkeeping"), (3, "repeated"), (5, "repeated")]


def test_a_prompt_that_is_only_in_the_context_counts() -> None:
    """A prompt counts without a record of sending, as in earlier protocols."""
    assert summary(context("hi")) == [(2, Speaker.HUMAN, Kind.PROMPT, "hi")]


def test_steering_is_a_prompt() -> None:
    """Text that the user types while the model works is a prompt."""
    assert summary(prompt("stop", "turn.steer")) == [(2, Speaker.HUMAN, Kind.PROMPT, "stop")]


@pytest.mark.parametrize(
    "text", [context("<system-reminder>\nMind.\n</system-reminder>"), context("Go", "system_trigger")]
)
def test_texts_of_the_program_are_injected(text: dict[str, Any]) -> None:
    """Texts of the program are recognised by their origin or their envelope."""
    assert [(speaker, kind) for _, speaker, kind, _ in summary(text)] == [(Speaker.HOST, Kind.INJECTED)]


def test_a_step_has_thinking_prose_and_calls() -> None:
    """All parts of a step share a group. The end of the step has the usage."""
    records = (
        loop_event("content.part", part={"type": "think", "think": "Hm"}),
        loop_event("content.part", part={"type": "text", "text": "I look."}),
        call("Read", path="a.py"),
        tool_result("Read", output="1\tx"),
        loop_event(
            "step.end", uuid="step", usage={"inputOther": 5, "inputCacheRead": 3, "inputCacheCreation": 1, "output": 2}
        ),
    )
    result = reading.turns(KIMI, HEADER, *records)[-1]

    assert summary(*records) == [
        (2, Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (3, Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (4, Speaker.ASSISTANT, Kind.CALL, "Read: path=a.py"),
        (5, Speaker.TOOL, Kind.RESULT, "a.py"),
    ]
    assert (result.tool, result.reads) == ("Read", ("a.py",))
    assert notes(events(*records), Fact.USAGE) == [(6, "step 9 2")]


@pytest.mark.parametrize(
    "result", [{"output": "no\nCommand failed with exit code: 1."}, {"output": "no", "isError": True}]
)
def test_a_failed_call_touches_no_file(result: dict[str, Any]) -> None:
    """A flag, or the last line of a shell result, indicates the failure."""
    turn = reading.turns(KIMI, HEADER, call("Write", path="a.py"), tool_result("Write", **result))[-1]

    assert (turn.failed, turn.writes, turn.text.startswith("no")) == (True, (), True)


COUNTS = {"inputOther": 40, "output": 7, "inputCacheRead": 300, "inputCacheCreation": 2}
OTHER_COUNTS = {"inputOther": 1, "output": 1}


def used(*records: object) -> list[tuple[int, int]]:
    """Return the input and output tokens of each exchange."""
    found = reading.exchanges(KIMI, reading.jsonl([HEADER, prompt("hi"), *records]))
    return [(each.tokens_in, each.tokens_out) for each in found]


def test_usage_is_counted_once_wherever_it_is_recorded() -> None:
    """Usage is in the step, in a record of its own, or in both. Totals of the whole session are not added."""
    step, record_of = loop_event("step.end", uuid="u1", usage=COUNTS), partial(record, "usage.record")
    again = loop_event("step.end", uuid="u2", usage=COUNTS)
    cases: dict[str, tuple[list[dict[str, Any]], tuple[int, int]]] = {
        "step only": ([step], (342, 7)),
        "record without scope": ([record_of(usage=COUNTS)], (342, 7)),
        "record of a turn": ([record_of(usage=COUNTS, usageScope="turn")], (342, 7)),
        "record without inner object": ([record_of(**COUNTS)], (342, 7)),
        "session": ([record_of(usage=COUNTS, usageScope="session")], (0, 0)),
        "step, then record": ([step, record_of(usage=COUNTS)], (342, 7)),
        "record, then step": ([record_of(usage=COUNTS), step], (342, 7)),
        "two equal steps": ([step, record_of(usage=COUNTS), again, record_of(usage=COUNTS)], (684, 14)),
        "record of another call": ([step, record_of(usage=OTHER_COUNTS)], (343, 8)),
        "malformed": ([record_of(usage=[1]), record_of(usage={"output": "7"})], (0, 0)),
    }

    wrong = {name: used(*records) for name, (records, expected) in cases.items() if used(*records) != [expected]}

    assert wrong == {}


def test_equal_usage_of_two_exchanges_counts_twice() -> None:
    """A record repeats only a step of its own exchange."""
    step = loop_event("step.end", uuid="u1", usage=COUNTS)

    assert used(step, prompt("next"), record("usage.record", usage=COUNTS)) == [(342, 7), (342, 7)]


def test_undone_prompts_are_abandoned() -> None:
    """Undone prompts are counted backwards from the last prompt."""
    talk = (prompt("One"), prompt("Two"), prompt("Three"))

    assert notes(events(*talk, record("context.undo", count=2)), Fact.REWOUND) == [(5, "3")]
    assert skipped(events(*talk, record("context.undo", count=9)))[-1] == (5, "bookkeeping")


def test_records_describe_the_session() -> None:
    """Records provide the folder and the model, and a compaction is a turn."""
    bound = record("profile.bind", modelAlias="k2", environmentDisclosure={"cwd": "/home/demo/shop"})
    found = events(
        record("config.update", modelAlias="k1"), bound, record("context.apply_compaction", summary="So far.")
    )

    assert notes(found, Fact.MODEL) == [(2, "k1"), (3, "k2")]
    assert notes(found, Fact.CWD) == [(3, "/home/demo/shop")]
    assert summary(record("context.apply_compaction", summary="So far.")) == [
        (2, Speaker.HOST, Kind.COMPACTION, "So far.")
    ]


def test_other_records_are_skipped_by_reason() -> None:
    """State is bookkeeping, requests are context, and unknown types are skipped by type name."""
    records = (
        record("turn.cancel"),
        record("llm.request"),
        record("new"),
        loop_event("new"),
        loop_event("step.begin"),
        prompt(""),
    )

    assert [reason for _, reason in skipped(events(*records))[1:]] == [
        "bookkeeping",
        "context",
        "unknown-type:new",
        "unknown-type:loop/new",
        "bookkeeping",
        "empty",
    ]


def test_only_its_own_records_are_recognised() -> None:
    """A first line without a creation time belongs to Kimi CLI and is not recognised."""
    older = {"type": "metadata", "protocol_version": "1.4"}

    assert [known.agent for known in all_formats() if known.recognises([HEADER])] == ["kimi-code"]
    assert [known.agent for known in all_formats() if known.recognises([context("hi")])] == ["kimi-code"]
    assert not KIMI.recognises([older])


def test_journals_are_found_in_the_folders_of_agents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Folders identify the session and the agent. The state file contains the working folder."""
    monkeypatch.setenv("KIMI_CODE_HOME", str(tmp_path))
    session = tmp_path / "sessions" / "wd_shop_0b7dfb1274ee" / "session_1bcbe023"
    paths = [session / "agents" / name / "wire.jsonl" for name in ("agent-0", "main")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    (session / "state.json").write_text('{"workDir": "/home/demo/shop"}')

    (root,) = KIMI.roots()
    below, main = (KIMI.identify(path, b"") for path in KIMI.transcripts(root))

    assert main == Session("kimi-code", "1bcbe023", cwd="/home/demo/shop")
    assert below == Session("kimi-code", "1bcbe023-agent-0", SessionKind.SUBAGENT, "1bcbe023", cwd="/home/demo/shop")
    assert KIMI.identify(tmp_path / "copy.jsonl", b"") == Session("kimi-code", "copy")


def test_a_session_with_a_damaged_state_is_read(tmp_path: Path) -> None:
    """With a damaged state file, the working folder comes from the records if possible."""
    path = tmp_path / "session_1" / "agents" / "main" / "wire.jsonl"
    path.parent.mkdir(parents=True)
    (tmp_path / "session_1" / "state.json").write_bytes(b"{\xff")

    assert KIMI.identify(path, b"").cwd == ""
