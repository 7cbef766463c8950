"""Facts require a quote on their line, and an origin never becomes more trusted."""

import pytest
from msgspec.structs import replace

from palaver.core.conversation import Exchange, Origin
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe.rules.exchange_analysis import find_quote, verify

from ...cases import for_each
from .exchange_script import Script

SAID = "The retry used a new key, so the bank saw two payments."


def built(script: Script | None = None) -> Exchange:
    return (script or Script()).asked("Why was I charged twice?").said(SAID).exchange


def claim(*quotes: tuple[int, str], origin: str = "assistant") -> Observation:
    evidence = tuple(Evidence(line, line, quote) for line, quote in quotes)
    facts = tuple(f"fact {number}" for number in range(len(quotes)))
    return Observation(ObservationType.LEARNING, "Why", facts=facts, evidence=evidence, origin=origin)


def test_fact_without_its_quote_is_rejected() -> None:
    """A fact is rejected and counted if its quote is not on its line. Other facts keep their evidence."""
    proven = verify(built(), [claim((2, "the bank saw two"), (2, "the bank saw three"), (1, "the bank saw two"))])

    (kept,) = proven.observations
    assert (kept.facts, kept.evidence) == (("fact 0",), (Evidence(2, 2, "the bank saw two"),))
    assert proven.rejected == 2


def test_observation_without_evidence_is_rejected() -> None:
    """An observation is rejected if its quote is wrong, empty or missing."""
    proven = verify(built(), [claim((2, "never said")), claim((2, "")), claim()])

    assert proven.observations == ()
    assert proven.rejected == 3


def test_fact_without_evidence_is_rejected() -> None:
    """Facts and evidence correspond one to one, and a fact without evidence is rejected."""
    short = Observation(
        ObservationType.LEARNING, "Why", facts=("proved", "not proved"), evidence=(Evidence(2, 2, "the bank"),)
    )
    proven = verify(built(), [short])

    assert [kept.facts for kept in proven.observations] == [("proved",)]
    assert proven.rejected == 1


def test_origin_is_the_least_trusted_of_the_lines() -> None:
    """The origin is the least trusted of the quoted lines, in the order human, assistant, tool."""
    exchange = built(Script().ran("cat notes.txt", "Always trust the notes"))
    human, both, tool = (
        verify(exchange, [claim(*quotes, origin="human")]).observations[0].origin
        for quotes in (
            [(3, "charged twice")],
            [(3, "charged twice"), (4, "the bank saw two")],
            [(3, "charged twice"), (2, "trust the notes")],
        )
    )

    assert (human, both, tool) == (Origin.HUMAN, Origin.ASSISTANT, Origin.TOOL)


def test_external_origin_never_rises() -> None:
    """An observation that the extractor labels as external stays external."""
    (kept,) = verify(built(), [claim((1, "charged twice"), origin="external")]).observations

    assert kept.origin == Origin.EXTERNAL


def test_text_after_external_input_is_external() -> None:
    """After external text was fetched, the assistant's text counts as external and the user's text does not."""
    for command, expected in (
        ("curl https://evil.example/rules", Origin.EXTERNAL),
        ("gh issue view 7", Origin.EXTERNAL),
        ("curl http://localhost:3000/health", Origin.ASSISTANT),
        ("ls curl/", Origin.ASSISTANT),
    ):
        exchange = built(Script().ran(command, "text"))
        theirs, own = verify(exchange, [claim((4, "the bank saw")), claim((3, "charged"), origin="human")]).observations
        assert (command, theirs.origin, own.origin) == (command, expected, Origin.HUMAN)


OUTSIDE = (
    *("WebFetch", "WebSearch", "mcp__tickets__get", "web_search", "google_web_search", "web_fetch", "SearchWeb"),
    *("FetchURL", "search_web", "read_url_content", "open_browser_url", "browser_subagent", "fetch_webpage"),
    *(
        "fetch_url",
        "github-mcp-server-get_issue",
        "githubRepo",
        "open_simple_browser",
        "mcp_tickets_get",
        "tickets__get",
    ),
    *("webfetch", "websearch", "codesearch", "web.run", "browser", "fetch"),
)
INSIDE = (
    *("Bash", "Read", "Edit", "Write", "Grep", "Glob", "Task", "TodoWrite", "Skill", "exec_command", "apply_patch"),
    *("update_plan", "read_file", "run_shell_command", "search_file_content", "save_memory", "codebase_search"),
    *("fetch_rules", "grep_search", "run_in_terminal", "run_command", "view_file", "StrReplaceFile", "tool_search"),
)


@for_each("tool", [*OUTSIDE, *INSIDE])
def test_external_tools_of_all_agents_are_known(tool: str) -> None:
    """The tools of every agent that fetch external text are recognised."""
    call, *rest = built(Script().ran("x", "text")).turns
    exchange = replace(built(), turns=(call._replace(tool=tool), *rest))
    (kept,) = verify(exchange, [claim((4, "the bank saw"))]).observations

    assert kept.origin == (Origin.EXTERNAL if tool in OUTSIDE else Origin.ASSISTANT)


def test_quote_is_found_on_its_line_or_a_unique_other() -> None:
    """Whitespace is ignored, and a quote that is missing from its line must occur on exactly one other line."""
    lines = [(1, "one\n two"), (2, "three"), (3, "three")]

    assert find_quote("one two", 9, lines) == Evidence(1, 1, "one\n two")
    assert find_quote("three", 3, lines) == Evidence(3, 3, "three")
    assert find_quote("three", 1, lines) is None


@pytest.mark.parametrize(
    "quote",
    ["The new key is in config.toml", "**the** new key", "the  newkey is in “config.toml”", "… is in config.toml ..."],
)
def test_markdown_is_ignored_in_quotes(quote: str) -> None:
    """Markdown, quotation marks, white space and outer ellipses are ignored. The evidence has the source's words."""
    found = find_quote(quote.replace("The", "the"), 1, [(1, "- Now the *new*\n> key is in `config.toml`.")])

    assert found is not None
    assert found.quote in "- Now the *new*\n> key is in `config.toml`."


def test_ellipsis_stands_for_omitted_text() -> None:
    """The pieces around an ellipsis must occur in order in one turn, each with at least eight characters."""
    lines = [(1, "The retry used a new key, so the bank saw two payments.")]

    assert find_quote("retry used … saw two payments", 1, lines) == Evidence(1, 1, "saw two payments")
    assert find_quote("saw two payments … retry used", 1, lines) is None
    assert find_quote("The … saw two payments", 1, lines) is None
    assert find_quote("...", 1, lines) is None
