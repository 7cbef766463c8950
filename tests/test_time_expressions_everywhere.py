"""One grammar of time expressions serves queries, command-line options and tools."""

from datetime import UTC, datetime, timedelta

import click
import pytest
from click.testing import CliRunner

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.cli.output import date_option
from palaver.core.conversation import day_end, day_start
from palaver.core.query import Filters
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.templates.render import Renderer

from .agents.fake_layers import FakeLayers

EXPRESSION = "a fortnight ago"


def days_ago(days: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=days)).isoformat()


def test_in_a_query() -> None:
    """A time expression in a query is a date range instead of search terms."""
    query = AnalyzedQuery.of(f"what broke {EXPRESSION}", dated=True)

    [time] = query.times
    assert (query.text, time.text) == ("what broke", EXPRESSION)
    assert (time.after, time.before) == (day_start(days_ago(19)), day_end(days_ago(9)))


@pytest.mark.parametrize("last", [False, True])
def test_in_an_option(last: bool) -> None:
    """Date options such as --after and --before accept the expression."""
    accepted = list[str]()

    def show(day: str) -> None:
        accepted.append(day)

    CliRunner().invoke(click.command(date_option("--day", last=last, help="A day.")(show)), ["--day", EXPRESSION])

    assert accepted == [EXPRESSION]


def test_in_filters_and_tools() -> None:
    """Search filters and parameters of the MCP tool `search` accept the expression and include both bounds."""
    index, [search] = FakeLayers(), [tool for tool in CONVERSATION.tools if tool.name == "search"]
    search.call(ConversationContext(index, Renderer()), {"query": "kettle", "after": EXPRESSION, "before": EXPRESSION})

    wanted = Filters(after=day_start(days_ago(14)), before=day_end(days_ago(14)))
    assert index.asked[0].filters == wanted == Filters.parse(after=EXPRESSION, before=EXPRESSION)
