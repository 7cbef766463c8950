"""The usage of an archive: each reply once, by every group, incrementally, and without what the user deleted."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.recorded_usage import VERSION
from palaver.archiver.store import usage_table
from palaver.core.config import Config
from palaver.core.conversation import day_start, use_time_zone
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput, UnknownProject
from palaver.core.home import Home
from palaver.core.tokens import TokenCounts
from palaver.core.usage_report import UsageFilter, UsageGroup, UsageReport
from palaver.observe.archive import Archive
from palaver.observe.usage_reader import read_usage

from ..archiver.formats.claude_code.claude_lines import assistant, progress, text, user
from ..archiver.history import FORK, ORIGINAL, History, named

OWN = Config(prices={"model-1": (1.0, 10.0), "model-2": (0.0, 100.0, 0.0, 0.0, 0.0)})
DAY, SESSION, MODEL = UsageGroup.DAY, UsageGroup.SESSION, UsageGroup.MODEL


@pytest.fixture(autouse=True)
def _days_in_utc() -> None:
    use_time_zone(UTC)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as history:
        yield history


def reply(name: str, output: int = 10, at: str = "2026-03-01T10:00:00.000Z", **fields: Any) -> list[dict[str, Any]]:
    """Return a prompt and a reply of 100 input tokens."""
    place = {"sessionId": ORIGINAL, "cwd": "/home/demo/shop", "gitBranch": "main", "timestamp": at, **fields}
    asked, answered = named(f"{name}-asked"), named(f"{name}-answered")
    record = assistant(text(f"{name}!"), id=f"msg-{name}", requestId=f"req-{name}", uuid=answered, parentUuid=asked)
    record["message"] |= {
        "usage": {"input_tokens": 100, "output_tokens": output},
        "model": fields.get("model", "model-1"),
    }
    return [user(f"{name}?", uuid=asked) | place, record | place]


def usage_of(history: History, by: UsageGroup = DAY, filters: UsageFilter | None = None) -> UsageReport:
    with Archive(history.home, OWN) as archive:
        return archive.usage.report(by, filters or UsageFilter())


def outputs(report: UsageReport) -> dict[str, int]:
    return {row.name: row.counts.output for row in report.rows}


def test_a_reply_counts_once_in_a_fork_and_belongs_to_the_original(history: History) -> None:
    history.write(reply("one"))
    history.write([record | {"sessionId": FORK} for record in (*reply("one"), *reply("two", 7))], FORK, at=5)
    history.ingest()
    report = usage_of(history, SESSION)

    assert report.total.counts == TokenCounts(200, 17)
    assert sorted(outputs(report).values()) == [7, 10]
    assert (report.total.replies, report.total.sessions) == (2, 2)


def test_the_cost_is_the_list_price_of_the_model(history: History) -> None:
    history.write([*reply("one", 1_000), *reply("two", 10, model="model-2"), *reply("three", 5, model="unheard")])
    history.ingest()
    report = usage_of(history, MODEL)

    assert [(row.name, row.cost, row.unpriced_tokens) for row in report.rows] == [
        ("model-1", 10_100_000, 0),
        ("model-2", 1_000_000, 0),
        ("unheard", 0, 105),
    ]
    assert (report.prices, report.unpriced) == (("prices in config.toml",), {"unheard": 105})


def test_periods_are_listed_from_the_latest_and_others_from_the_most_expensive(history: History) -> None:
    times = {"a": "2026-02-27T23:59:59.999Z", "b": "2026-03-01T00:00:00.000Z", "c": "2026-03-02T00:00:00.000Z"}
    history.write([record for name, at in times.items() for record in reply(name, ord(name), at)])
    history.write([record | {"sessionId": FORK, "cwd": "/x/tool"} for record in reply("d", 500)], FORK, project="tool")
    history.ingest()

    assert outputs(usage_of(history)) == {"2026-03-02": 99, "2026-03-01": 598, "2026-02-27": 97}
    assert outputs(usage_of(history, UsageGroup.WEEK)) == {"2026-03-02": 99, "2026-02-23": 695}
    assert outputs(usage_of(history, UsageGroup.MONTH)) == {"2026-03": 697, "2026-02": 97}
    assert [*outputs(usage_of(history, UsageGroup.PROJECT))] == ["tool", "shop"]
    assert outputs(usage_of(history, UsageGroup.AGENT)) == {"claude-code": 794}


def test_a_branch_is_that_of_the_reply(history: History) -> None:
    history.write([*reply("one", 1), *reply("two", 2, gitBranch="fix")])
    history.ingest()

    assert {(row.name, row.project): row.counts.output for row in usage_of(history, UsageGroup.BRANCH).rows} == {
        ("fix", "shop"): 2,
        ("main", "shop"): 1,
    }


def test_a_block_is_five_hours_from_the_full_hour_of_its_first_reply(history: History) -> None:
    times = ("09:20", "14:00", "14:01", "19:30")
    history.write([record for at in times for record in reply(at, 1, f"2026-03-01T{at}:00.000Z")])
    history.ingest()
    report = usage_of(history, UsageGroup.BLOCK)

    assert outputs(report) == {"2026-03-01 19:00": 1, "2026-03-01 14:00": 1, "2026-03-01 09:00": 2}
    assert {(row.end or 0) - (row.start or 0) for row in report.rows} == {5 * 3_600_000}


def test_filters_select_replies(history: History) -> None:
    history.write([*reply("one", 1), *reply("two", 2, "2026-03-05T10:00:00.000Z", model="model-2", gitBranch="fix")])
    history.ingest()
    for filters in (
        UsageFilter(after=day_start("2026-03-02")),
        UsageFilter(models=("model-2",)),
        UsageFilter(branches=("fix",)),
    ):
        assert usage_of(history, DAY, filters).total.counts.output == 2
    assert usage_of(history, DAY, UsageFilter(before=day_start("2026-03-02"))).total.counts.output == 1
    assert usage_of(history, DAY, UsageFilter(projects=("/home/demo/shop",))).total.counts.output == 3
    assert usage_of(history, DAY, UsageFilter(agents=("codex",))).total.replies == 0
    with pytest.raises(UnknownProject):
        usage_of(history, DAY, UsageFilter(projects=("shoop",)))
    with pytest.raises(InvalidInput, match="Unknown agent: claud"):
        usage_of(history, DAY, UsageFilter(agents=("claud",)))


def subagent(output: int) -> list[dict[str, Any]]:
    """Return the transcript of a session with the message of a sub-agent, whose output was recorded as it began."""
    [asked, told] = reply("sub", output)
    return [
        *reply("one"),
        *(progress(record, agent="a1b2c3", task="sub?", sessionId=ORIGINAL) for record in (asked, told)),
    ]


def test_the_output_of_a_sub_agent_in_progress_records_is_partial(history: History) -> None:
    history.write(subagent(3))
    history.ingest()
    report = usage_of(history, SESSION)

    assert [(row.counts.output, row.replies, row.partial_replies) for row in report.rows] == [(13, 2, 1)]
    with Archive(history.home, OWN) as archive:
        number = history.store.sessions.find("claude-code", ORIGINAL)
        assert number is not None
        own, total = archive.usage.of_session(number)
        [subagent_number] = history.store.sessions.subagents(history.store.sessions.load(number))
        of_subagent = archive.usage.of_session(subagent_number)
    assert [row.counts.output for row in of_subagent] == [3, 3]
    assert (own.counts.output, total.counts.output, own.cost, total.cost) == (10, 13, 200_000, 330_000)


def test_only_new_lines_are_read(history: History) -> None:
    history.write(reply("one"))
    history.ingest()
    usage_of(history)
    source = history.source()
    before = history.copy(source)
    history.append(reply("two", 7))
    history.ingest()
    # The lines that were read are unreadable now, so a second reading would lose them.
    (history.home.archive / source.archived).write_bytes(history.copy(source).replace(before, b" " * len(before)))

    assert usage_of(history).total.counts.output == 17
    assert history.store.usage.unread() == []


def test_a_line_without_an_end_counts_and_is_read_again(history: History) -> None:
    [*_, whole] = history.write(reply("one")).read_bytes().splitlines(keepends=True)
    history.write(history.path().read_bytes()[:-1])
    history.ingest()
    assert usage_of(history).total.counts.output == 10

    history.append(b"\n")
    history.append(reply("two", 7))
    history.ingest()
    assert usage_of(history).total.counts.output == 17
    assert whole.endswith(b"\n")


def test_deleted_lines_are_not_counted_until_the_deletion_is_undone(history: History) -> None:
    history.write([*reply("one"), *reply("two", 7)])
    history.ingest()
    assert usage_of(history).total.counts.output == 17
    with Archive(history.home, OWN) as archive:
        request = DeletionRequest(mentions="two?")
        deletion = archive.deletions.delete(request, archive.deletions.preview(request).token)
        assert deletion.number is not None
        assert usage_of(history).total.counts.output == 10

        archive.deletions.undo(deletion.number)
        assert usage_of(history).total.counts.output == 17


def test_an_erased_session_is_not_counted(history: History) -> None:
    history.write(reply("one"))
    history.write([record | {"sessionId": FORK} for record in reply("two", 7)], FORK)
    history.ingest()
    usage_of(history)
    with Archive(history.home, OWN) as archive:
        request = DeletionRequest((FORK,), erase=True)
        archive.deletions.delete(request, archive.deletions.preview(request).token)

    assert usage_of(history).total.counts.output == 10


def test_a_missing_copy_is_reported(history: History) -> None:
    history.write(reply("one"))
    history.ingest()
    (history.home.archive / history.source().archived).unlink()

    assert (usage_of(history).unread, usage_of(history).total.replies) == (1, 0)


def test_a_read_only_archive_shows_what_was_counted(history: History) -> None:
    history.write(reply("one"))
    history.ingest()
    usage_of(history)
    history.append(reply("two", 7))
    history.ingest()
    with Archive(Home(history.home.root, read_only=True), OWN) as archive:
        report = archive.usage.report(DAY)

    assert (report.total.counts.output, report.unread) == (10, 1)


def test_reading_reports_its_progress_and_can_be_stopped(history: History) -> None:
    history.write(reply("one"))
    history.ingest()
    steps = list[tuple[int, int]]()

    assert read_usage(history.home, history.store, should_stop=lambda: True) == 1
    assert read_usage(history.home, history.store, lambda done, total: steps.append((done, total))) == 0
    assert steps == [(0, 1), (1, 1)]


def test_new_rules_of_counting_read_everything_again(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.write(reply("one"))
    history.ingest()
    usage_of(history)
    [before] = [*history.store.usage.replies()]
    assert history.store.usage.unread() == []

    state = str(vars(usage_table)["_STATE"])
    monkeypatch.setattr(usage_table, "_STATE", state.replace(f"'{VERSION} ", "'next "))
    monkeypatch.setattr(usage_table, "VERSION", "next")

    [position] = history.store.usage.unread()
    assert (position.byte, position.line) == (0, 1)
    assert usage_of(history).total.counts == before.counts
