"""Tests of `parsing.py`."""

# pyright: reportPrivateUsage=false

import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.reading.parsing import Exclusion
from palaver.archiver.redaction.redactor import Unindexed
from palaver.core.conversation import Kind
from palaver.core.errors import ConfigInvalid
from palaver.core.home import OWN_PROMPT_MARK
from palaver.core.query import Query
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ..formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..formats.codex import codex_lines
from ..history import FORK, ORIGINAL, History, talk

# Excluded exchanges, sessions and folders stay in the raw copies only, and their lines are counted.


MARKER = "Do not index this chat. one"
ONE = "Do not index this message. two"


def test_one_exchange_is_excluded(history: History) -> None:
    """An exchange whose prompt asks not to be indexed is not stored. Other exchanges are stored, all lines counted."""
    history.write(talk("a", ONE, "b"))
    history.ingest()

    assert history.prompts() == ["a?", "b?"]
    assert history.source().coverage == {"parsed": 4, Unindexed.EXCHANGE: 2}


def test_a_session_is_excluded_afterwards(history: History) -> None:
    """A request to exclude a session removes everything stored of the session, and applies to later lines."""
    history.write(talk("a"))
    history.ingest()
    history.append(talk(MARKER), at=2)
    history.ingest()
    history.append(talk("c"), at=3)
    history.ingest()

    assert history.prompts() == []
    assert history.session().title == ""
    assert history.source().coverage == {Unindexed.SESSION: 6}


def test_a_fork_of_an_excluded_session_is_excluded(history: History) -> None:
    """A fork that repeats a request for exclusion is excluded, although the line belongs to the original."""
    history.write(talk("a", MARKER))
    history.write([*talk("a", MARKER), *talk("d", session=FORK)], FORK, at=2)
    history.ingest()

    assert history.prompts(FORK) == []


def test_sub_agents_of_an_excluded_session_are_excluded(history: History) -> None:
    """If a session is excluded, its sub-agents that were already archived are excluded in the same run."""
    side = [{**record, "isSidechain": True, "agentId": "x1"} for record in talk("s")]
    history.write(talk("a"))
    history.write(side, "agent-x1", at=2)
    history.ingest()
    assert history.prompts("agent-x1") == ["s?"]

    history.append(talk(MARKER), at=3)
    history.ingest()

    assert history.prompts("agent-x1") == []


@pytest.mark.parametrize(
    ("pattern", "folder", "covered"),
    [
        ("secret-*", "/home/me/secret-plans/deep/er", True),
        ("secret-*", "/home/me/plans", False),
        ("/home/me/private", "/home/me/private/a", True),
        ("/home/me/private", "/home/me/privateer", False),
        ("/home/*/private", "/home/me/x/private/a", True),
        ("/", "/home", False),
        ("clients", "C:\\work\\clients\\a", True),
    ],
)
def test_patterns_cover_folders_at_any_depth(pattern: str, folder: str, covered: bool) -> None:
    """A pattern without a slash matches folder names at any depth. A path matches from the root."""
    assert Exclusion([pattern]).covers(folder) is covered


def test_the_worktrees_of_an_excluded_folder_are_excluded() -> None:
    """A worktree is excluded with its repository, wherever its path places it, and in both Unicode forms of a name."""
    exclusion = Exclusion(["/code/ledger", "größe"])

    assert exclusion.covers("/code/ledger.worktrees/fix-1/src")
    assert exclusion.covers("/code/ledger/.claude/worktrees/fix-1")
    assert exclusion.covers("/home/demo/.codex/worktrees/7c1e/größe")
    assert exclusion.covers(unicodedata.normalize("NFD", "/code/größe/src"))
    assert not exclusion.covers("/code/ledger-2.worktrees/fix-1")


def test_a_relative_path_is_refused() -> None:
    """A relative path as an exclusion is refused, because it could refer to any folder."""
    with pytest.raises(ConfigInvalid):
        Exclusion(["work/clients"])


def test_excluded_folders_are_not_copied(history: History) -> None:
    """A transcript is excluded by the folder in its content. Other transcripts are archived."""
    history.write(talk("a", project="/home/demo/secret-plans"))
    history.write(talk("b", session=FORK), FORK, at=2)
    tally = Ingest(history.store, history.raw, Exclusion(["secret-*"])).run(in_paths([history.folder]))

    assert (tally.excluded, tally.changed) == (1, 1)
    assert [name for name in history.archive_files() if ORIGINAL in name] == []


def test_a_session_excluded_later_stays_until_deleted(history: History) -> None:
    """If a session's folder is excluded later, the session stays archived and is counted, but gets no new lines."""
    history.write(talk("a", project="/home/demo/secret-plans"))
    history.ingest()
    history.append(talk("b", project="/home/demo/secret-plans"))
    tally = Ingest(history.store, history.raw, Exclusion(["secret-*"])).run(in_paths([history.folder]))

    assert (tally.still_archived, tally.excluded, tally.changed) == (1, 1, 0)
    assert history.prompts() == ["a?"]


def test_newer_rules_read_everything_again(history: History) -> None:
    """With newer redaction rules, all stored text is redacted again, and unchanged exchanges keep their keys."""
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    history.write(talk("a", f"use {secret} now"))
    history.ingest()
    database = history.store._database
    before = [stored.key for stored in history.stored()]
    database.run("UPDATE source SET rules = ''")
    database.run("UPDATE session SET title = ?", (f"use {secret}",))
    database.run(
        "UPDATE exchange SET turns = CAST(replace(turns, '[secret:github-pat:', ?) AS BLOB) WHERE ordinal = 1",
        (secret,),
    )
    tally = history.ingest()

    assert (tally.changed, tally.reread, tally.outdated) == (0, 1, 0)
    assert [stored.key for stored in history.stored()] == before
    assert secret not in history.home.database.read_bytes().decode(errors="replace")
    assert history.ingest().reread == 0


# Palaver's own output stays in the raw archive and is never indexed.


SERVER = "mcp__palaver__search"
FENCED = "<recalled-12345678>\nex-1 2026-03-01 exchange 0.91 zephyr\n</recalled-12345678>"


def texts(history: History, session: str = ORIGINAL) -> list[str]:
    return [turn.text for exchange in history.exchanges(session) for turn in exchange.turns]


def in_project(*records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records with the working folder of the project `shop`."""
    return [{"cwd": "/home/demo/shop", **record} for record in records]


def coverage(history: History, session: str = ORIGINAL) -> dict[str, int]:
    """Return the outcomes of a source's lines. Assert that every line is counted."""
    source = history.source(session)
    assert sum(source.coverage.values()) == source.lines
    return source.coverage


def test_calls_of_own_tools_are_removed(history: History) -> None:
    """Calls of Palaver's tools and their results are removed. The turns around them stay."""
    history.write(
        in_project(
            user("Why?", uuid="a"),
            assistant(tool(SERVER, {"query": "zephyr"}), uuid="b"),
            result("zephyr was it", uuid="c"),
            assistant(text("Because."), uuid="d"),
        )
    )
    history.ingest()

    assert texts(history) == ["Why?", "Because."]
    assert coverage(history) == {"parsed": 2, "own-tool": 2}


def test_a_result_without_its_call_is_removed(history: History) -> None:
    """The result of a Palaver tool is recognised by the tool's name, even without its call."""
    invocation = {"server": "palaver", "tool": "search"}
    answer = {"Ok": {"content": [{"type": "text", "text": "zephyr"}]}}
    ended = codex_lines.event("mcp_tool_call_end", call_id=codex_lines.CALL, invocation=invocation, result=answer)
    path = history.folder / f"rollout-2026-03-01T10-00-00-{codex_lines.SESSION}.jsonl"
    path.write_bytes(jsonl([codex_lines.meta(), *codex_lines.user_prompt("Why?"), ended]))
    history.ingest()

    assert [turn.text for stored in history.stored() for turn in stored.exchange.turns] == ["Why?"]
    assert history.store.sources.coverage()["own-tool"] == 1


def test_results_of_own_shell_commands_are_removed(history: History) -> None:
    """Results of Palaver commands are removed. The result of a combined command loses only recalled text."""
    wind = tool("Bash", {"command": "palaver search zephyr --json"})
    mixed = tool("Bash", {"command": "make; palaver search zephyr"}, id="toolu_2")
    history.write(
        in_project(
            user("Why?"),
            assistant(wind),
            result("zephyr"),
            assistant(mixed, id="msg_2"),
            result(f"built\n{FENCED}", id="toolu_2", is_error=True),
        )
    )
    history.ingest()

    assert texts(history) == ["Why?", "Bash: make; palaver search zephyr", "built"]
    assert coverage(history) == {"parsed": 3, "own-tool": 2}


def test_a_line_with_other_content_stays_parsed(history: History) -> None:
    """If a line also has other content, only Palaver's own content is removed."""
    history.write(in_project(user("Why?"), assistant(text("I look."), tool(SERVER, {"query": "zephyr"}))))
    history.ingest()

    assert texts(history) == ["Why?", "I look."]
    assert coverage(history) == {"parsed": 2}


@pytest.mark.parametrize("content", [f"{FENCED}\nDo that again.", f"Do that again.\n{FENCED}"])
def test_pasted_recalled_text_is_removed(history: History, content: str) -> None:
    """Recalled text in a prompt is removed. The user's own words stay and become the title."""
    history.write(in_project(user(content)))
    history.ingest()

    assert texts(history) == ["Do that again."]
    assert history.session().title == "Do that again."


def test_a_line_of_recalled_text_only_is_counted(history: History) -> None:
    """A line that contains only recalled text, such as output of a hook, is counted but not indexed."""
    history.write(in_project(user(FENCED, isMeta=True), user("Go on")))
    history.ingest()

    assert texts(history) == ["Go on"]
    assert coverage(history) == {"parsed": 1, "own-recalled": 1}


def test_an_exchange_with_an_own_prompt_is_removed(history: History) -> None:
    """An exchange whose prompt has Palaver's marker is removed. Later exchanges of the session stay."""
    own = user(f"{OWN_PROMPT_MARK}\nExtract what was learned of zephyr.")
    later = (user("And now me"), assistant(text("Yes."), id="msg_2"))
    history.write(in_project(user("Hello"), own, assistant(text("zephyr")), *later))
    history.ingest()

    assert texts(history) == ["Hello", "And now me", "Yes."]
    assert coverage(history) == {"parsed": 3, "own-run": 2}


def test_a_growing_own_session_is_removed(history: History) -> None:
    """A growing session that begins with Palaver's own prompt stays removed, and each line is counted once."""
    own = user(f"{OWN_PROMPT_MARK}\nExtract.")
    history.write(in_project(own, assistant(text("zephyr"))))
    history.ingest()
    history.append(in_project(assistant(text("more zephyr"), id="msg_2")))
    history.ingest()

    assert texts(history) == []
    assert coverage(history) == {"own-run": 3}


def test_a_session_in_the_home_is_removed(history: History) -> None:
    """A session whose folder is anywhere below Palaver's home is removed."""
    inside = str(history.home.root / "runs" / "7")
    history.write(in_project(user("zephyr", cwd=inside), assistant(text("zephyr"), cwd=inside)))
    history.write(talk("A", session=FORK), FORK)
    history.ingest()

    assert texts(history) == []
    assert coverage(history) == {"own-folder": 2}
    assert history.prompts(FORK) == ["A?"]


def subagent(*records: dict[str, Any]) -> bytes:
    return jsonl([{**record, "isSidechain": True, "agentId": "a1", "sessionId": ORIGINAL} for record in records])


@pytest.mark.parametrize(("other", "left"), [("Read", 2), (SERVER, 0)])
def test_a_sub_agent_that_only_calls_palaver_is_removed(history: History, other: str, left: int) -> None:
    """A sub-agent that only calls Palaver is removed. A sub-agent that also does other work stays."""
    path = history.folder / "shop" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(
        subagent(
            user("Find zephyr"),
            assistant(tool(SERVER, {"query": "zephyr"})),
            result("zephyr"),
            assistant(tool(other, {"query": "x"}, id="toolu_2"), id="msg_2"),
        )
    )
    history.ingest()

    assert len(texts(history, "agent-a1")) == left


def claude_transcript(answer: str) -> bytes:
    place = {"sessionId": FORK, "cwd": "/home/demo/other"}
    return jsonl(
        [
            user("What did we say about the wind?", **place),
            assistant(tool(SERVER, {"query": "zephyr"}), **place),
            result([text(answer)], extra=[text(answer)], **place),
            assistant(text("It was settled."), id="msg_2", **place),
            user(f"I had found this:\n{answer}", **place),
        ]
    )


def codex_transcript(answer: str) -> bytes:
    arguments = '{"query": "zephyr"}'
    call = {"namespace": "mcp__palaver", "name": "search", "arguments": arguments, "call_id": codex_lines.CALL}
    run = "call_Qx81kPq02LmNv7TyRw3sBd4e"
    return jsonl(
        [
            codex_lines.meta(),
            *codex_lines.user_prompt("What did we say about the wind?"),
            codex_lines.item("function_call", **call),
            codex_lines.tool_output(answer),
            codex_lines.tool_call("exec_command", '{"cmd": "cat notes.md"}', run),
            codex_lines.tool_output(f"Exit code: 1\nOutput:\n{answer}", run),
            *codex_lines.agent_reply("It was settled."),
        ]
    )


@pytest.mark.parametrize("transcript", [claude_transcript, codex_transcript])
def test_a_search_result_is_not_found_again(
    history: History, transcript: Callable[[str], bytes], tmp_path: Path
) -> None:
    """A search result in another agent's transcript is archived but not indexed. Search finds only the original."""
    history.write([user("The zephyr breaks the build", cwd="/home/demo/shop"), assistant(text("Pin zephyr to 2.4."))])
    history.ingest()
    with ArchiveSearch(history.home) as layers:
        first = layers.find(Query.parse("zephyr", mode="text"))
        detail = layers.details([hit.id for hit in first.hits])
    answer = Renderer().search(first) + Renderer().observations(detail)
    assert "zephyr" in answer

    later = tmp_path / "later" / f"rollout-2026-03-01T10-00-00-{FORK}.jsonl"
    later.parent.mkdir()
    later.write_bytes(transcript(answer))
    history.ingest()
    Ingest(history.store, history.raw).run(in_paths([later]))
    with ArchiveSearch(history.home) as layers:
        again = layers.find(Query.parse("zephyr", mode="text"))
        wind = layers.find(Query.parse("wind", mode="text"))
        passage = layers.read(wind.hits[0].path, 1, None)

    assert [hit.id for hit in again.hits] == [hit.id for hit in first.hits]
    assert [turn.text for each in passage.exchanges for turn in each.turns if "zephyr" in turn.text]
    kinds = Counter(turn.kind for stored in history.stored() for turn in stored.exchange.turns if turn.tool == SERVER)
    assert not kinds[Kind.CALL] + kinds[Kind.RESULT]
