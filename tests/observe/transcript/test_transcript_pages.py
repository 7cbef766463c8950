"""Tests of the pages of a session."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from palaver.core.errors import InvalidInput
from palaver.core.tokens import TokenCounts
from palaver.core.transcript_page import ClippedText, Outcome, Step, StepKind, SubagentAnswer, TranscriptPage
from palaver.observe.transcript.session_views import SessionViews

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ...archiver.history import FORK, ORIGINAL, History, named, talk
from .sessions import bash, conversation, edit, long_session, viewed


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionViews, int]]:
    """Session that needs several pages."""
    with viewed(tmp_path_factory.mktemp("long"), long_session()) as (views, number, _):
        yield views, number


def places(page: TranscriptPage) -> list[tuple[int, int]]:
    return [(step.line, step.position) for exchange in page.exchanges for step in exchange.steps]


def steps(page: TranscriptPage) -> list[Step]:
    return [step for exchange in page.exchanges for step in exchange.steps]


def test_later_pages_show_every_step_once(long: tuple[SessionViews, int]) -> None:
    views, number = long
    shown, page = list[tuple[int, int]](), views.pages.page(number, start=1)
    count = 1
    while True:
        shown += places(page)
        if page.later is None:
            break
        page, count = views.pages.page(number, start=page.later), count + 1

    assert len(shown) == 6 * (1 + 2 * 25)
    assert shown == sorted(set(shown))
    assert count > 3


def test_earlier_pages_show_every_step_once(long: tuple[SessionViews, int]) -> None:
    views, number = long
    shown, page = list[tuple[int, int]](), views.pages.page(number)
    assert page.later is None
    while True:
        shown = [*places(page), *shown]
        if page.earlier is None:
            break
        page = views.pages.page(number, before=page.earlier)

    assert len(shown) == 6 * (1 + 2 * 25)
    assert shown == sorted(set(shown))


@pytest.mark.parametrize("line", [1, 2, 3, 4, 60, 126, 127, 131, 400, 755, 756])
def test_a_page_contains_the_requested_line(long: tuple[SessionViews, int], line: int) -> None:
    views, number = long
    page = views.pages.page(number, line=line)

    assert any(step.line <= line <= step.last_line for step in steps(page))


def test_a_line_near_its_prompt_is_shown_with_the_prompt(long: tuple[SessionViews, int]) -> None:
    views, number = long

    assert steps(views.pages.page(number, line=140))[0].kind is StepKind.PROMPT
    assert views.pages.page(number, line=240).exchanges[0].continued


def test_a_line_after_the_end_shows_the_end(long: tuple[SessionViews, int]) -> None:
    views, number = long

    assert places(views.pages.page(number, line=10**6)) == places(views.pages.page(number))


def test_a_page_reads_the_raw_copy_only_within_its_exchanges(tmp_path: Path) -> None:
    with viewed(tmp_path, long_session(3)) as (views, number, history):
        source = history.source()
        copy = history.home.archive / source.archived
        data = copy.read_bytes()
        before = views.pages.page(number)
        first = before.exchanges[0].start_line
        start = sum(len(line) for line in data.splitlines(keepends=True)[: first - 1])
        copy.write_bytes(b"\0" * start + data[start:])

        assert views.pages.page(number) == before


def test_a_missing_copy_still_shows_the_stored_steps(tmp_path: Path) -> None:
    with viewed(tmp_path, long_session(1, 3)) as (views, number, history):
        (history.home.archive / history.source().archived).unlink()

        assert len(steps(views.pages.page(number))) == 7


def test_edits_have_their_added_and_removed_lines(tmp_path: Path) -> None:
    records = conversation(user("Do it"), *edit("a.py", "one\ntwo\nthree", "one\n2\nthree\nfour", "toolu-1"))
    with viewed(tmp_path, records) as (views, number, _):
        [_, run] = steps(views.pages.page(number))

    assert (run.calls[0].subject, run.calls[0].added, run.calls[0].removed) == ("a.py", 2, 1)
    assert run.summary == "1 call: 1 edit in a.py +2 −1"


def test_the_tokens_of_an_exchange_count_each_reply_once(tmp_path: Path) -> None:
    def reply(output: int, message: str) -> dict[str, Any]:
        record = assistant(text(f"{message} {output}"), id=message)
        record["message"]["usage"] = {"input_tokens": 2, "output_tokens": output, "cache_read_input_tokens": 100}
        return record

    records = conversation(
        user("One"), reply(1, "msg-a"), reply(9, "msg-a"), reply(5, "msg-b"), user("Two"), reply(4, "msg-c")
    )
    for record in records:
        record.pop("requestId", None)
    with viewed(tmp_path, records) as (views, number, _):
        one, two = views.pages.page(number).exchanges
        assert one.usage == TokenCounts(4, 14, 200)
        assert two.usage == TokenCounts(2, 4, 100)


@contextmanager
def delegated(folder: Path, answer: str, *own: dict[str, Any]) -> Generator[tuple[SessionViews, int, int]]:
    """Open a session whose sub-agent wrote the records `own`, with the numbers of both."""
    task = {"description": "Find it", "prompt": "Find the bug in the parser.", "subagent_type": "Explore"}
    records = conversation(
        user("Fix the bug"),
        assistant(tool("Task", task, "toolu-1")),
        result(answer, {"agentId": "a1b2c3"}, "toolu-1"),
        assistant(text("Fixed.")),
    )
    child = [
        {**record, "isSidechain": True, "agentId": "a1b2c3"}
        for record in conversation(user("Find the bug in the parser."), *own)
    ]
    for number, record in enumerate(child):
        record["uuid"] = f"99999999-0000-4000-8000-00000000000{number}"
    with History(folder) as history:
        history.write(records)
        subagents = history.path().with_suffix("") / "subagents"
        subagents.mkdir(parents=True)
        (subagents / "agent-a1b2c3.jsonl").write_bytes(jsonl(child))
        history.ingest()
        views = SessionViews(history.home, history.store)
        yield views, views.number(ORIGINAL), views.number("agent-a1b2c3")


def test_a_sub_agent_is_linked_to_its_call(tmp_path: Path) -> None:
    with delegated(tmp_path, "It is in line 3.", assistant(text("It is in line 3."))) as (views, number, own):
        step = next(step for step in steps(views.pages.page(number)) if step.kind is StepKind.SUBAGENT)
        link = step.calls[0].subagent
        assert link is not None
        detail = views.details.call(number, 1, step, 0)

        assert views.number(link.session) == own
        assert views.subagent(detail) == (
            ClippedText("Find the bug in the parser."),
            ClippedText("It is in line 3."),
        )
        assert steps(views.pages.page(own))[0].kind is StepKind.TASK


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("It is in line 3.", "It is in line 3."),
        ("Line 3.\nagentId: a1b2c3 (for resuming the work)\n<usage>total_tokens: 9</usage>", "Line 3."),
        ("Async agent launched successfully.\nagentId: a1b2c3", ""),
    ],
)
def test_the_answer_of_a_sub_agent_is_the_result_of_its_call(tmp_path: Path, output: str, answer: str) -> None:
    """Claude Code ends the transcript of a sub-agent before its answer."""
    with delegated(tmp_path, output, assistant(tool("Read", {"file_path": "/a.py"}, "toolu-2"))) as (views, _, own):
        assert views.answer_of(own) == SubagentAnswer(ORIGINAL, 1, 3, 0, ClippedText(answer), Outcome.DONE)


def test_a_long_answer_of_a_sub_agent_is_shown_up_to_a_limit(tmp_path: Path) -> None:
    """`hidden` counts the characters that the page of the text shows."""
    output = "It is in line 3.\n" * 5_000
    call = assistant(tool("Read", {"file_path": "/a.py"}, "toolu-2"))
    with delegated(tmp_path, output, call) as (views, number, own):
        answer = views.answer_of(own)
        assert answer
        start = len(answer.text.text)
        following = views.details.text(number, answer.part, answer.line, answer.position, start)

    assert answer.text.hidden > 0
    assert f"{answer.text.text}{following.text}".split() == output.split()


def test_only_a_sub_agent_has_an_answer_to_a_parent(tmp_path: Path) -> None:
    with delegated(tmp_path, "It is in line 3.") as (views, number, _):
        assert views.answer_of(number) is None


def test_a_fork_names_the_session_that_it_repeats(history: History) -> None:
    history.write(talk("one", "two"))
    history.write([*talk("one", "two", session=FORK), *talk("three", session=FORK)], FORK, at=2)
    history.ingest()
    views = SessionViews(history.home, history.store)
    page = views.pages.page(views.number(FORK))

    assert (page.copied_from, page.copied_lines) == (ORIGINAL, 4)
    assert [exchange.heading for exchange in page.exchanges] == ["three?"]


def test_a_rewound_part_is_marked(history: History) -> None:
    asked = talk("one", "two")
    again = user("two again?", uuid=named("two-again"), parentUuid=named("one-answered"), sessionId=ORIGINAL)
    asked[2]["parentUuid"] = named("one-answered")
    history.write([*asked, again])
    history.ingest()
    views = SessionViews(history.home, history.store)
    shown = steps(views.pages.page(views.number(ORIGINAL)))

    assert [step.text for step in shown if step.rewound] == ["two?", "two!"]


def test_the_exchanges_of_a_session_in_several_files_have_consecutive_numbers(history: History) -> None:
    history.write(talk("one", "two"))
    history.write(talk("three", "four"), project="yard", at=2)
    history.ingest()
    views = SessionViews(history.home, history.store)
    number = views.number(ORIGINAL)
    pages = [views.pages.page(number, part=part) for part in (1, 2)]

    assert [[exchange.number for exchange in page.exchanges] for page in pages] == [[1, 2], [3, 4]]
    assert [(prompt.part, prompt.number) for prompt in views.outline(number)] == [(1, 1), (1, 2), (2, 3), (2, 4)]


def test_a_part_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with viewed(tmp_path, conversation(user("Hello"))) as (views, number, _):
        with pytest.raises(InvalidInput, match="no file 2"):
            views.pages.page(number, part=2)
        with pytest.raises(InvalidInput, match="line 99"):
            views.pages.step(number, 1, 99, 0)


def test_new_lines_continue_the_last_step(tmp_path: Path) -> None:
    whole = conversation(
        user("Go"), *bash("ls", "a", "toolu-1"), *bash("make test", "ok", "toolu-2"), assistant(text("Done"))
    )
    with History(tmp_path) as history:
        history.write(whole[:3])
        history.ingest()
        views = SessionViews(history.home, history.store)
        number = views.number(ORIGINAL)
        last = steps(views.pages.page(number))[-1]
        assert views.last_line(number, 1) == 3
        history.append(whole[3:])
        history.ingest()
        grown = views.pages.page(number, 1, start=last.line)

        assert views.last_line(number, 1) == 6
        assert [step.kind for step in steps(grown)] == [StepKind.RUN, StepKind.PROSE]
        assert len(steps(grown)[0].calls) == 2
