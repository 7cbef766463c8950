"""Sessions are found by the first characters of their IDs, and shown with their summaries and observations."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.conversation import Session, SessionKind
from palaver.core.errors import InvalidInput, UnknownIds
from palaver.core.query import Query
from palaver.core.results import SessionOutline
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present.details import items_of

from ...archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user
from ...archiver.history import History

SESSIONS = ("aaaa1111-0000-4000-8000-000000000001", "aaaa1222-0000-4000-8000-000000000001", "bbbb")


@pytest.fixture
def layers(tmp_path: Path) -> Iterator[ArchiveSearch]:
    """Return an archive of three sessions, two of which have IDs with the same first characters."""
    with History(tmp_path) as history:
        for session in SESSIONS:
            place = {"sessionId": session, "cwd": "/home/demo/shop"}
            edit = tool("Write", {"file_path": f"/home/demo/shop/{session}.py", "content": "x"}, id=f"t{session}")
            history.write(
                [
                    user(f"The kettle page {session} needs a badge.", uuid=f"q{session}", **place),
                    assistant(edit, id=f"m{session}", uuid=f"c{session}", **place),
                    result("ok", id=f"t{session}", **place),
                    assistant(text(f"Added a badge to `{session}.py`."), id=f"e{session}", **place),
                ],
                session,
            )
    with Pipeline(history.home) as pipeline:
        pipeline.run(in_paths([tmp_path]))
    with ArchiveSearch(history.home) as opened:
        yield opened


def test_hits_carry_the_shortest_unambiguous_id(layers: ArchiveSearch) -> None:
    """The short ID has as many characters as distinguish it from all others, and at least four."""
    found = {hit.session_id: hit.short_session_id for hit in layers.find(Query.parse("badge", mode="text")).hits}

    assert found == dict(zip(SESSIONS, ("aaaa11", "aaaa12", "bbbb"), strict=True))


def test_a_session_is_shown_by_its_short_id(layers: ArchiveSearch) -> None:
    """Its details name its observations, and its timeline has all its entries."""
    [detail] = layers.details(["aaaa11"])
    whole = layers.timeline("aaaa11")

    assert (detail.kind, detail.id, detail.session_id) == ("session", "aaaa11", SESSIONS[0])
    assert {entry.id for entry in detail.entries} == {hit.id for hit in whole.hits}
    assert layers.details(["bbbb", detail.entries[0].id, "bbbb"])[0].id == "bbbb"
    assert layers.locate("aaaa11")[0] == detail.path == whole.path


def test_a_session_with_one_result_is_called_by_it(layers: ArchiveSearch) -> None:
    """A session that the agent did not title, and that has no card, is called by its only observation."""
    titles = {entry.title for entry in layers.sessions(Query.newest(by="session")).sessions}

    assert titles == {f"Added a badge to {session}.py" for session in SESSIONS}


def test_an_ambiguous_id_lists_the_sessions(layers: ArchiveSearch) -> None:
    """Of several sessions, none is chosen. Fewer than four characters name no session."""
    with pytest.raises(InvalidInput, match="2 session IDs begin with aaaa1") as error:
        layers.details(["aaaa1"])
    assert "aaaa11" in (error.value.hint or "")
    with pytest.raises(UnknownIds):
        layers.timeline("bbb")


def test_sessions_are_listed_latest_first(layers: ArchiveSearch) -> None:
    """Each session is listed once, on one page or on several."""
    everything = layers.sessions(Query.newest(by="session"))
    first = layers.sessions(Query.newest(by="session", limit=2))
    second = layers.sessions(Query.newest(by="session", limit=2, cursor=first.cursor))

    assert {each.session_id for each in everything.sessions} == set(SESSIONS)
    assert first.sessions + second.sessions == everything.sessions
    assert {each.exchanges for each in everything.sessions} == {1}


def test_a_claim_of_a_session_that_changed_nothing_is_no_title(tmp_path: Path) -> None:
    """A session whose only edit was refused is called by its request."""
    session, record = SESSIONS[0], "cccc1111-0000-4000-8000-000000000001"
    place = {"sessionId": session, "cwd": "/home/demo/shop"}
    titled = {"type": "summary", "summary": "Empty Shop: Kettle Page Created", "leafUuid": record}
    with History(tmp_path) as history:
        for name, failed in ((session, True), (SESSIONS[1], False)):
            edit = tool("Write", {"file_path": "/home/demo/shop/kettle.py", "content": "x"}, id=f"t{name}")
            own = {**place, "sessionId": name}
            history.write(
                [
                    user("/init", **own),
                    assistant(edit, id=f"m{name}", uuid=record.replace("1", str(1 + failed)), **own),
                    result("You haven't granted it yet.", id=f"t{name}", is_error=failed),
                    {**titled, "leafUuid": record.replace("1", str(1 + failed))},
                ],
                name,
            )
    with Pipeline(history.home) as pipeline:
        pipeline.run(in_paths([tmp_path]))
    with ArchiveSearch(history.home) as opened:
        titles = {entry.session_id: entry.title for entry in opened.sessions(Query.newest(by="session")).sessions}

    assert titles == {session: "/init", SESSIONS[1]: "Empty Shop: Kettle Page Created"}


def outline(title: str, *facts: str, branch: str = "main", project: str = "shop") -> SessionOutline:
    return SessionOutline(title, title, project, "test", SessionKind.MAIN, branch, None, None, 1, title, "", facts)


def test_a_later_session_closes_open_items() -> None:
    """An item is left out if a later title or result names it. Another session on the branch leaves it open."""
    gap = "Open: The kettle page lacks a badge for new kettles."
    step = "Next: Run the load test of the kettle page."
    first = outline("Draw the kettle page", gap, step)

    def items(*later: SessionOutline) -> list[str]:
        return [item.text for item in items_of([*later, first])]

    assert items() == [gap, step]
    assert items(outline("Translate the terms", branch="terms")) == [gap, step]
    assert items(outline("Translate the terms")) == [gap, step]
    assert items(outline("Add a badge", "Outcome: The kettle page has a badge for new kettles", branch="b")) == [step]
    assert items(outline("Kettle page: badge for new kettles", project="other")) == [gap, step]


@given(names=st.sets(st.text("ab1-", min_size=1, max_size=12), min_size=1, max_size=12))
def test_short_ids_are_unambiguous(names: set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """A short ID is a beginning of the ID, and no other ID begins with it unless it is the whole ID."""
    with Store.create(tmp_path_factory.mktemp("ids") / "palaver.db") as store:
        with store.transaction():
            numbers = {store.sessions.save(Session("claude-code", name)): name for name in names}
        for number, short in store.sessions.short_ids(numbers).items():
            name = numbers[number]
            assert name.startswith(short)
            assert short == name or not any(other.startswith(short) for other in names - {name})


def test_short_ids_distinguish_more_than_the_word_before_them(tmp_path: Path) -> None:
    """Words such as `agent-` at the start of an ID do not count as its four characters."""
    wanted = {
        "agent-a0ad4f44468bdf20d": "agent-a0ad",
        "subagent_agent-12345": "subagent_agent-1234",
        "abcdefab-0000-4000-8000-000000000001": "abcd",
    }
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            numbers = [store.sessions.save(Session("claude-code", name)) for name in wanted]

        assert list(store.sessions.short_ids(numbers).values()) == list(wanted.values())


def test_equal_ids_of_two_agents_are_distinguished(tmp_path: Path) -> None:
    """The name of the agent precedes an ID that sessions of two agents have."""
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            numbers = [store.sessions.save(Session(agent, "small")) for agent in ("codex", "claude-code")]

        assert store.sessions.short_ids(numbers) == {numbers[0]: "codex/small", numbers[1]: "claude-code/small"}
