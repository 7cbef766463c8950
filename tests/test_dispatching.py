"""`palaver.dispatch`: a language model searches the archive, within limits, and its citations are checked."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palaver
from palaver.archiver.store import Store
from palaver.core.errors import ConfigInvalid, InvalidDate, QueryTooShort
from palaver.core.home import OWN_PROMPT_MARK, Home, is_own_folder
from palaver.core.reports import Spent
from palaver.core.results import CitedAnswer
from palaver.core.tokens import count
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from .observe.llm.server import FakeProvider, Sent, completion_calls, failing, message, tool_use
from .observe.llm.test_openai_api import completion

QUESTION = "sqlite or json files"
CITED = "- 2026-02-03: use SQLite, because the plug is pulled. [obs-{}]"

LONG = {"input_tokens": 12_000, "output_tokens": 4_000}
"""Tokens of a call that uses up a small budget."""


class Asker:
    """Copy of the demo archive whose language model is the test's server."""

    def __init__(self, home: Home, provider: FakeProvider) -> None:
        self.home, self.provider = home, provider
        self.lines: list[str] = []
        with ArchiveSearch(home) as archive:
            details = [archive.details([public])[0] for public in self.ids()]
        [self.id, *_] = [one.id for one in details if "plug is pulled" in one.observation.title]
        [self.path, *_] = [one.path for one in details if one.id == self.id]
        [self.other, *_] = [one.id for one in details if one.project == "tide-clock" and one.id != self.id]

    def ids(self) -> list[str]:
        with Store.open(self.home.database) as store:
            kinds = store.items.kinds(store.items.all_keys())
        return [f"obs-{key}" for key, kind in kinds.items() if kind == "observation"]

    def configure(self, **settings: object) -> None:
        values = {"llm_url": self.provider.url, "llm_model": "m", "llm_price": [1, 10], "budget_month": 5.0} | settings
        rows = [f"{name} = {json.dumps(value)}" for name, value in values.items() if value is not None]
        self.home.config.write_text("\n".join(rows))

    def ask(self, question: str = QUESTION, **options: Any) -> CitedAnswer:
        return palaver.dispatch(question, home=self.home.root, report=self.lines.append, **options)

    def spent(self) -> Spent:
        with Store.open(self.home.database) as store:
            [row] = store.ledger.by_model()
        return row

    def results(self, call: int) -> list[dict[str, Any]]:
        """Return the last message of a request: the results of the tools."""
        content: list[dict[str, Any]] = self.provider.calls[call]["messages"][-1]["content"]
        return content


@pytest.fixture
def asker(built: Home, tmp_path: Path, provider: FakeProvider) -> Asker:
    asker = Asker(Home(shutil.copytree(built.root, tmp_path / "palaver")), provider)
    asker.configure()
    return asker


def test_model_searches_and_answers_with_sources(asker: Asker) -> None:
    """The model calls the tools, and its answer comes with its sources and a receipt."""
    asker.provider.script = [
        Sent(body=tool_use(("search", {"query": "storage choice", "also": ["SQLite or JSON"]}))),
        Sent(body=tool_use(("get_observations", {"ids": [asker.id]}), ("read", {"path": asker.id}))),
        Sent(body=message(f"**Answer.** SQLite.\n\n{CITED.format(asker.id.removeprefix('obs-'))} [{asker.path}:13]")),
    ]

    answer = asker.ask()

    assert (answer.findings, answer.notices) == ((), ())
    assert [(source.id, source.exists) for source in answer.sources] == [(asker.id, True), ("", True)]
    [session] = answer.sessions
    assert (session.path, session.project) == (asker.path, "tide-clock")
    receipt = answer.receipt
    assert (receipt.searches, receipt.reads, receipt.model) == (2, 1, "m")
    assert (receipt.model_tokens, receipt.cost) == (3 * 2_100, 3 * (1_900 * 1_000 + 200 * 10_000))
    with ArchiveSearch(asker.home) as archive:
        assert receipt.transcript_tokens == archive.conversation_tokens(asker.path) > 0
    assert receipt.tokens == count(Renderer().cited_answer(answer))
    row = asker.spent()
    assert (row.reason, row.calls, row.unanswered, row.cost) == ("asking", 3, 0, receipt.cost)


def test_model_gets_the_definition_the_question_and_first_results(asker: Asker) -> None:
    """The first request has the prompt of the agent, the three tools, the question and the results of a search."""
    asker.provider.script = [Sent(body=message("Nothing found about it."))]

    asker.ask()

    [call] = asker.provider.calls
    [system], [first] = call["system"], call["messages"][0]["content"]
    assert system["text"].startswith(f"{OWN_PROMPT_MARK}\nYou search an archive")
    assert [tool["name"] for tool in call["tools"]] == ["search", "get_observations", "read"]
    assert QUESTION in first["text"]
    assert "<recalled-" in first["text"]
    assert asker.id in first["text"]
    assert asker.lines[0].startswith(f'search "{QUESTION}": ')
    assert asker.lines[1].startswith("get_observations obs-")


def test_current_project_is_named_and_preferred(asker: Asker, tmp_path: Path) -> None:
    """The model learns the current project. With `projects`, all its searches are limited to them."""
    asker.provider.script = [
        Sent(body=message("Nothing found.")),
        Sent(body=tool_use(("search", {"query": "catalogue", "projects": ["seed-library"]}))),
        Sent(body=message("Nothing found.")),
    ]
    folder = tmp_path / "tide-clock"
    folder.mkdir()

    asker.ask(project=folder)
    asker.ask(projects=["tide-clock"])

    assert "The current project is `tide-clock`" in asker.provider.calls[0]["messages"][0]["content"][0]["text"]
    assert "[seed-library]" not in asker.results(2)[0]["content"]


def test_tool_errors_go_back_to_the_model(asker: Asker) -> None:
    """Invalid calls become failed results with the messages of the MCP server, and the loop goes on."""
    asker.provider.script = [
        Sent(
            body=tool_use(
                ("search", {"query": "x"}),
                ("get_observations", {"ids": ["obs-99999"]}),
                ("read", {"path": "../palaver.db"}),
                ("delete", {}),
            )
        ),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask()

    results = asker.results(1)
    assert [result["is_error"] for result in results] == [True] * 4
    assert results[0]["content"] == "Query too short: Single string must be ≥2 characters"
    assert "Invalid observation ID: obs-99999" in results[1]["content"]
    assert "File not found" in results[2]["content"]
    assert "Unknown tool: delete. Tools: search, get_observations, read" in results[3]["content"]
    assert answer.notices == ()


def test_endless_loop_ends_with_an_answer(asker: Asker) -> None:
    """Before the last turn, the model is asked to answer without tools, and the answer says so."""

    def search(params: dict[str, Any]) -> Sent:
        if params["tool_choice"]["type"] == "none":
            return Sent(body=message(CITED.format(asker.id.removeprefix("obs-"))))
        return Sent(body=tool_use(("search", {"query": "SQLite"})))

    asker.provider.default = search

    answer = asker.ask(max_turns=3)

    assert len(asker.provider.calls) == 3
    assert "The limit of 3 turns is almost reached. Call no tool." in asker.results(2)[-1]["text"]
    assert answer.notices == ("The answer may be incomplete: The limit of 3 turns ended the search early.",)
    assert [source.id for source in answer.sources] == [asker.id]


@pytest.mark.parametrize("preamble", [[], [{"type": "text", "text": "Let me search for more."}]])
def test_model_that_only_calls_tools_is_cut_off(asker: Asker, preamble: list[dict[str, str]]) -> None:
    """If the model calls tools in its last turn, too, the loop ends. Text before a call is no answer."""
    called = tool_use(("search", {"query": "SQLite"}))
    asker.provider.default = lambda _: Sent(body=called | {"content": [*preamble, *called["content"]]})

    answer = asker.ask(max_turns=4)

    assert len(asker.provider.calls) == asker.spent().calls == 4
    assert answer.findings
    assert "The limit of 4 turns was reached before the model answered" in answer.notices[0]
    assert "Rules composed this answer instead." in answer.notices[0]
    assert answer.receipt.cost == asker.spent().cost > 0


def test_single_turn_answers_from_the_first_results(asker: Asker) -> None:
    """With one turn, the model answers from the first results, without calling a tool."""
    asker.provider.script = [Sent(body=message(CITED.format(asker.id.removeprefix("obs-"))))]

    answer = asker.ask(max_turns=1)

    [call] = asker.provider.calls
    assert call["tool_choice"] == {"type": "none"}
    assert call["messages"][0]["content"][0]["text"].endswith("Write your answer now, from what you found so far.")
    assert [source.id for source in answer.sources] == [asker.id]


def test_many_calls_in_one_message_are_limited(asker: Asker) -> None:
    """At most eight calls of one message run. The others get an error."""
    asker.provider.script = [
        Sent(body=tool_use(*[("search", {"query": f"SQLite {number}"}) for number in range(20)])),
        Sent(body=message("Nothing found.")),
    ]

    assert asker.ask().receipt.searches == 9
    results = asker.results(1)
    assert [result["is_error"] for result in results] == [False] * 8 + [True] * 12


def test_invented_and_guessed_citations_are_marked(asker: Asker) -> None:
    """IDs that do not exist, or that the model never read, and claims without a source are marked in the text."""
    guessed = next(one for one in asker.ids() if one not in _first_results(asker))
    text = (
        f"- It uses SQLite in one file. [{asker.id}]\n- It moved to Postgres later that year. [obs-99999]\n"
        f"- Nobody liked the first version. [{guessed}]\n- The tests took nine seconds to run.\n"
        f"- See the lines of that session. [{asker.path}:99999]"
    )
    asker.provider.script = [Sent(body=message(text))]

    answer = asker.ask()

    assert answer.text.splitlines() == [
        f"- It uses SQLite in one file. [{asker.id}]",
        "- It moved to Postgres later that year. [obs-99999 [not in the archive]]",
        f"- Nobody liked the first version. [{guessed} [not in the results]]",
        "- The tests took nine seconds to run. [no source]",
        f"- See the lines of that session. [{asker.path}:99999 [not in the archive]]",
    ]
    assert answer.notices == (
        "Invented by the model, and marked: 3 citations.",
        "Without a valid source, and marked: 4 claims.",
    )
    cited = {source.id or source.path: (source.exists, source.read) for source in answer.sources}
    assert cited[asker.id] == (True, True)
    assert cited[guessed] == (True, False)
    assert cited["obs-99999"] == (False, False)


def test_lines_that_no_result_contained_are_marked(asker: Asker) -> None:
    """Existing lines of a conversation that the model did not open are no source."""
    seen = _first_results(asker)
    with ArchiveSearch(asker.home) as archive:
        paths = {archive.details([public])[0].path for public in asker.ids()}
    path = next(path for path in sorted(paths) if path not in seen)
    asker.provider.script = [Sent(body=message(f"- Nobody liked the first version. [{path}:1]"))]

    answer = asker.ask()

    assert answer.text == f"- Nobody liked the first version. [{path}:1 [not in the results]]"
    assert answer.sessions == ()


def _first_results(asker: Asker) -> str:
    asker.provider.script = [Sent(body=message("Nothing found."))]
    asker.ask()
    return str(asker.provider.calls[0]["messages"])


def test_overload_is_retried(asker: Asker) -> None:
    """After status 529 or 429 the same request is sent again. Only the answered call is booked."""
    asker.provider.script = [
        failing(529, "overloaded_error", retry_after="0"),
        failing(429, "rate_limit_error", retry_after="0"),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask()

    first, *others = asker.provider.calls
    assert others == [first, first]
    assert (answer.notices, asker.spent().calls) == ((), 1)
    assert any("the provider is busy (529)" in line for line in asker.lines)


def test_lasting_overload_falls_back_to_rules(asker: Asker) -> None:
    """After three failures, rules compose the answer. Nothing is charged."""
    asker.provider.default = lambda _: failing(529, "overloaded_error", retry_after="0")

    answer = asker.ask()

    assert (len(asker.provider.calls), answer.receipt.cost) == (3, 0)
    assert answer.findings
    assert "overloaded_error of the test" in answer.notices[0]


def test_long_wait_falls_back_to_rules(asker: Asker) -> None:
    """A requested wait beyond the time limit ends the question at once."""
    asker.provider.script = [failing(429, "rate_limit_error", retry_after="50")]

    assert asker.ask(timeout=20).findings
    assert len(asker.provider.calls) == 1


def test_slow_model_ends_at_the_time_limit(asker: Asker) -> None:
    """A model that does not answer in time is given up, and its call stays booked at its maximum cost."""
    asker.provider.default = lambda _: Sent(body=message("Late."), delay=30)

    answer = asker.ask(timeout=1)

    assert "did not answer in time" in answer.notices[0]
    assert (asker.spent().unanswered, answer.receipt.cost) == (1, asker.spent().cost)
    assert answer.receipt.cost > 0


def test_time_limit_leaves_room_for_the_answer(asker: Asker) -> None:
    """When most of the time is used, the model is asked to answer."""
    asker.provider.script = [
        Sent(body=tool_use(("search", {"query": "SQLite"})), delay=2.1),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask(timeout=3)

    assert asker.provider.calls[-1]["tool_choice"] == {"type": "none"}
    assert "The time limit of 3 s" in answer.notices[0]


def test_budget_reached_in_the_middle(asker: Asker) -> None:
    """If the budget allows only one more call, the model answers from what it found. The budget is never exceeded."""
    asker.provider.script = [
        Sent(body=tool_use(("search", {"query": "SQLite"})) | {"usage": LONG}),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask(max_cost=0.17)

    assert [call["tool_choice"]["type"] for call in asker.provider.calls] == ["auto", "none"]
    assert answer.notices == ("The answer may be incomplete: The budget ended the search early.",)
    assert asker.spent().cost <= 170_000_000


def test_default_budget_lets_expensive_models_search(asker: Asker) -> None:
    """Another search needs the estimated cost of its call, and the maximum cost of the answer."""
    asker.configure(llm_price=[5, 25])
    asker.provider.script = [
        Sent(body=tool_use(("search", {"query": "SQLite"}))),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    asker.ask()

    assert asker.provider.calls[0]["tool_choice"]["type"] == "auto"


def test_exhausted_budget_falls_back_to_rules(asker: Asker) -> None:
    """If no call is affordable, none is made, and the notice names the limit and the remedy."""
    answer = asker.ask(max_cost=0.01)

    assert (asker.provider.calls, answer.receipt.cost) == ([], 0)
    assert answer.findings
    assert "budget_run has $0.01 left" in answer.notices[0]
    assert "Raise --max-cost" in answer.notices[0]

    asker.configure(budget_month=0.001)
    assert "budget_month" in asker.ask().notices[0]


def test_token_limit_in_the_middle(asker: Asker) -> None:
    """Near the token limit, the model answers from what it found. If no call fits, none is made."""
    asker.provider.script = [
        Sent(body=tool_use(("search", {"query": "SQLite"})) | {"usage": LONG}),
        Sent(body=message(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask(max_tokens=30_000)

    assert [call["tool_choice"]["type"] for call in asker.provider.calls] == ["auto", "none"]
    assert answer.notices == ("The answer may be incomplete: The limit of 30,000 tokens ended the search early.",)
    assert "The language model gave no answer: the limit of 2,000 tokens" in asker.ask(max_tokens=2_000).notices[0]
    assert len(asker.provider.calls) == 2


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (Sent(body=message("", "refusal")), "the model refused to answer"),
        (Sent(body=message(" ")), "the model returned no text"),
        (Sent(body=b"<html>"), "not a message of the Messages API"),
        (failing(401, "authentication_error"), "Check PALAVER_LLM_KEY"),
        (failing(400, "invalid_request_error"), "the provider rejected this request (400)"),
    ],
)
def test_failing_model_falls_back_to_rules(asker: Asker, sent: Sent, reason: str) -> None:
    """If the model refuses or fails, rules compose the answer, and a notice says why."""
    asker.provider.default = lambda _: sent

    answer = asker.ask()

    assert answer.findings
    assert answer.text == ""
    [notice] = answer.notices
    assert reason in notice


def test_cut_off_answer_is_reported(asker: Asker) -> None:
    """An answer that reached the maximum length is used, with a notice."""
    text = CITED.format(asker.id.removeprefix("obs-"))
    asker.provider.script = [Sent(body=message(text, "max_tokens"))]

    assert asker.ask().notices == ("The answer may be incomplete: the model's answer was cut off (max_tokens).",)


def test_cancelled_question_makes_no_further_call(asker: Asker) -> None:
    """After `should_stop` returns True, no tool and no model is called."""
    asker.provider.default = lambda _: Sent(body=tool_use(("search", {"query": "SQLite"})))

    answer = asker.ask(should_stop=lambda: bool(asker.provider.calls))

    assert len(asker.provider.calls) == 1
    assert "the question was cancelled" in answer.notices[0]


def test_chat_completions_hold_the_same_conversation(asker: Asker) -> None:
    """An OpenAI-compatible server without a key or a budget gets the same tools and results."""
    asker.configure(llm="openai", llm_url=f"{asker.provider.url}/v1", llm_price=[0, 0], budget_month=None)
    asker.provider.script = [
        failing(503, "overloaded", retry_after="0"),
        Sent(body=completion_calls(("search", '{"query": "SQLite"}'), ("search", "{not JSON"), ids=False)),
        Sent(body=completion(CITED.format(asker.id.removeprefix("obs-")))),
    ]

    answer = asker.ask()

    good, bad = asker.provider.calls[2]["messages"][-2:]
    assert (good["role"], good["tool_call_id"]) == ("tool", "call_0")
    assert "## Search Results" in good["content"]
    assert "not a JSON object" in bad["content"]
    assert ([source.id for source in answer.sources], answer.notices, answer.receipt.cost) == ([asker.id], (), 0)


def test_private_projects_are_never_sent(asker: Asker) -> None:
    """The model finds, opens and reads nothing of a private project."""
    asker.configure(private_projects=["tide-clock"])
    asker.provider.script = [
        Sent(
            body=tool_use(
                ("search", {"query": "SQLite", "kind": "observation"}),
                ("search", {"query": "sqlite3", "in": "output"}),
                ("get_observations", {"ids": [asker.id]}),
                ("read", {"path": asker.path}),
                ("search", {"query": "SQLite", "kind": "memory"}),
            )
        ),
        Sent(body=message("Nothing found.")),
    ]

    asker.ask()

    sent = str(asker.provider.calls)
    assert "plug is pulled" not in sent
    assert "SQLAlchemy" not in sent
    assert [result["is_error"] for result in asker.results(1)] == [False, False, True, True, True]


@pytest.mark.parametrize("private", ["tide-clock", "/home/demo/tide-clock", "/home/demo"])
def test_private_current_project_is_not_named(asker: Asker, tmp_path: Path, private: str) -> None:
    """The model does not learn the current project if it is private by name or by folder."""
    asker.configure(private_projects=[private])
    asker.provider.script = [Sent(body=message("Nothing found."))]
    folder = tmp_path / "tide-clock"
    folder.mkdir()

    asker.ask(project=folder)

    assert "The current project is" not in str(asker.provider.calls[0]["messages"])


def test_secrets_in_the_question_are_not_sent(asker: Asker) -> None:
    """A secret in the question is replaced before the model sees it."""
    secret = "sk-ant-api03-" + "Ab9_" * 23 + "AAA"
    asker.provider.script = [Sent(body=message("Nothing found."))]

    asker.ask(f"Why did the key {secret} fail?")

    assert secret not in str(asker.provider.calls)


def test_no_model_without_budget(asker: Asker) -> None:
    """Without a budget, rules answer. `max_cost` is a budget, and without a price it is an error."""
    asker.configure(budget_month=None)
    answer = asker.ask()
    assert (asker.provider.calls, answer.notices, bool(answer.findings)) == ([], (), True)

    asker.provider.script = [Sent(body=message("Nothing found."))]
    assert asker.ask(max_cost=1.0).text == "Nothing found."
    asker.configure(llm_url=None)
    assert "ANTHROPIC_API_KEY is not set" in asker.ask(max_cost=1.0).notices[0]
    asker.configure(llm_price=None)
    with pytest.raises(ConfigInvalid):
        asker.ask()


def test_invalid_questions_are_errors(asker: Asker) -> None:
    """An invalid question or filter is an error, and the model is not asked."""
    with pytest.raises(QueryTooShort):
        asker.ask("x")
    with pytest.raises(InvalidDate):
        asker.ask(after="tomorow")
    assert asker.provider.calls == []


AGENT = """
import json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
prompt = sys.stdin.read()
with (folder / "log").open("a") as file:
    file.write(json.dumps({{"prompt": prompt, "folder": os.getcwd(), "own": os.environ.get("PALAVER_OWN_RUN")}}))
    file.write(chr(10))
number = len((folder / "log").read_text().splitlines())
replies = json.loads((folder / "replies").read_text())
reply = replies[min(number, len(replies)) - 1]
if reply == "slow":
    time.sleep(600)
if reply == "failing":
    sys.exit("no account: run /login")
print(reply)
"""


@pytest.fixture
def agent(asker: Asker, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that configures an agent with these replies, and later returns its runs."""
    log = tmp_path / "log"
    program = tmp_path / "agent.py"
    program.write_text(AGENT.format(folder=str(tmp_path)))

    def runs(*replies: str, **settings: object) -> list[dict[str, Any]]:
        if replies:
            (tmp_path / "replies").write_text(json.dumps(replies))
            words = [sys.executable, str(program)]
            asker.configure(llm="command", llm_command=words, llm_url=None, budget_month=None, **settings)
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    return runs


def test_own_agent_answers(asker: Asker, agent: Callable[..., list[dict[str, Any]]]) -> None:
    """The user's agent gets the first results, asks for more in JSON, and answers. Its runs are Palaver's own."""
    calls = {"calls": [{"tool": "search", "arguments": {"query": "SQLite"}}], "answer": ""}
    done: dict[str, Any] = {"calls": [], "answer": CITED.format(asker.id.removeprefix("obs-"))}
    agent(f"Sure! Let me look.\n```json\n{json.dumps(calls)}\n```", f"Here it is: {json.dumps(done)} Bye!")

    answer = asker.ask()

    first, second = agent()
    assert first["prompt"].startswith(OWN_PROMPT_MARK)
    assert asker.id in first["prompt"]
    assert 'You replied: {"calls":[{"tool":"search"' in second["prompt"]
    assert (first["own"], is_own_folder(first["folder"])) == ("1", True)
    assert not Path(first["folder"]).exists()
    assert ([source.id for source in answer.sources], answer.notices) == ([asker.id], ())
    assert (asker.spent().calls, answer.receipt.cost) == (2, 0)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("failing", "no account: run /login"),
        ("slow", "did not end within"),
        ("I cannot help with that.", "does not have the expected structure"),
    ],
)
def test_failing_agent_falls_back_to_rules(
    asker: Asker, agent: Callable[..., list[dict[str, Any]]], reply: str, reason: str
) -> None:
    """If the agent fails, is slow, or does not follow the format, rules compose the answer."""
    agent(reply)

    answer = asker.ask(timeout=2)

    assert reason in answer.notices[0]
    assert answer.findings


def test_many_calls_of_the_agent_are_limited(asker: Asker, agent: Callable[..., list[dict[str, Any]]]) -> None:
    """At most eight calls of one reply run. The agent gets an error for each of the others."""
    calls = [{"tool": "search", "arguments": {"query": f"SQLite {number}"}} for number in range(10)]
    agent(json.dumps({"calls": calls, "answer": ""}), json.dumps({"calls": [], "answer": "Nothing found."}))

    assert asker.ask().receipt.searches == 9
    first, second = agent()
    assert "Write at most 8 calls." in first["prompt"]
    assert second["prompt"].count("Not run: at most 8 calls in one message") == 2


def test_daily_calls_of_the_agent_are_limited(asker: Asker, agent: Callable[..., list[dict[str, Any]]]) -> None:
    """The last allowed call asks for the answer. After that, no agent is started."""
    calls = {"calls": [{"tool": "search", "arguments": {"query": "SQLite"}}], "answer": ""}
    done: dict[str, Any] = {"calls": [], "answer": CITED.format(asker.id.removeprefix("obs-"))}
    agent(json.dumps(calls), json.dumps(done), llm_calls_day=2)

    assert asker.ask().notices == ("The answer may be incomplete: The budget ended the search early.",)
    assert "llm_calls_day" in asker.ask().notices[0]
    assert len(agent()) == 2


def test_import_loads_no_client() -> None:
    """Importing `palaver.dispatch` loads neither the SDK of the Messages API nor an HTTP client."""
    program = "import sys; from palaver import dispatch; print(*{'anthropic', 'httpx2', 'mcp'} & set(sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout == "\n"


def test_a_read_only_archive_is_answered_by_rules(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """In read-only mode, rules answer, a notice says so, and no byte of the home changes."""
    monkeypatch.setenv("PALAVER_READ_ONLY", "1")
    with Store.open(asker.home.database):  # Another process keeps the database open, as a server does.
        before = {path: path.read_bytes() for path in asker.home.root.rglob("*") if path.is_file()}

        answer = asker.ask()

        assert {path: path.read_bytes() for path in asker.home.root.rglob("*") if path.is_file()} == before
    assert answer.notices == ("No language model was used: the archive is read-only.",)
    assert answer.findings
    assert asker.provider.calls == []
