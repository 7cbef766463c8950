"""`palaver digest` reports the sessions of a period."""

import json

import pytest
from click.testing import CliRunner

from palaver.cli import main
from palaver.core.home import Home

from .commands import unmarked


@pytest.fixture(autouse=True)
def _demo(built: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_HOME", str(built.root))


def digest(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(main, ["digest", *arguments])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_a_period_and_a_project_select_the_sessions() -> None:
    page = unmarked(digest("--since", "2026-03-01", "--until", "2026-03-31", "--project", "tide-clock"))

    assert page == (
        "## 2026-03-01 to 2026-03-31: 1 session, 735 tokens, $0.01 at list price, not your bill\n"
        "<recalled-N>\n"
        "tide-clock: 1 session, 735 tokens, $0.01\n"
        "  Done\n"
        "    2026-03-30 High water one hour late since summer time: Compare instants in UTC, so that summer time does "
        "not move high water [1c90]\n"
        "  Learned\n"
        "    2026-03-30 The station sends UTC (+00:00), __main__.py uses datetime.now(), which is local time without a "
        "zone. [1c90]\n"
        "</recalled-N>\n"
        "Details: palaver show SESSION. All of it: add --markdown.\n"
    )


def test_a_report_has_further_results_and_no_marks() -> None:
    report = digest("--since", "2026-03-01", "--markdown")

    assert report.startswith("# 2026-03-01 to today\n\n4 sessions in 2 projects, ")
    assert "- Photo upload fails with 413 in production (2026-03-12, `5d82`)\n  - Deploy: allow photos" in report
    assert "recalled" not in report


def test_json_has_all_statements_with_their_sessions() -> None:
    projects = json.loads(digest("--since", "2026-01-01", "--json"))["projects"]

    assert [project["name"] for project in projects] == ["seed-library", "tide-clock"]
    assert [line["session"] for line in projects[1]["done"]] == ["2f4d", "1c90", "0b6f"]
    assert projects[1]["decided"][1]["text"] == "Let's use SQLite, one file, because the plug is pulled."


def test_an_empty_period_is_explained() -> None:
    assert digest("--week").startswith("No session in this period.")
    assert "exclude each other" in digest("--week", "--since", "yesterday", code=2)
    assert "Unknown project" in digest("--since", "2026-01-01", "--project", "tide-clok", code=2)


def test_an_end_needs_a_start() -> None:
    assert "--until needs --since" in digest("--until", "2026-01-01", code=2)
