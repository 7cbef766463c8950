"""Tests of the pages on the demo archive, on an empty home and on hostile content."""

import json
import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.archiver.store.session_list import SessionFilter
from palaver.core.conversation import Origin
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.observation import ENDINGS, OPEN, SUMMARY, Evidence, Observation, ObservationType
from palaver.core.query import Query
from palaver.core.usage_report import UsageRow
from palaver.observe.archive import Archive
from palaver.observe.extraction.preferences import PreferenceCandidate, Reason, decline
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep.archive_status import status_of
from palaver.viewer.html_filters import marked, row_price, time_range, token_counts

from .viewing import Viewer, text_of, viewing

PAGES = (
    "/",
    "/open",
    "/open/dismissed",
    "/sessions",
    "/sessions?project=nothing",
    "/sessions?subagents=1&page=99",
    "/search",
    "/search?q=tide",
    "/search?q=zzzqqq",
    "/files",
    "/files?path=nowhere.py",
    "/observations",
    "/observations?type=decision",
    "/memories",
    "/memories?state=all",
    "/usage",
    "/usage?by=block&after=2999-01-01",
    "/archive",
    "/archive/checks",
    "/deletions",
)


@pytest.fixture(scope="module")
def viewer(built: Home) -> Iterator[Viewer]:
    """Viewer of the demo archive."""
    with viewing(built) as opened:
        yield opened.enter()


@pytest.fixture
def own(built: Home, tmp_path: Path) -> Iterator[Viewer]:
    """Viewer of a copy of the demo archive, which a test can change."""
    shutil.copytree(built.root, tmp_path / "own")
    with viewing(Home(tmp_path / "own")) as opened:
        yield opened.enter()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_one_heading_and_a_title(viewer: Viewer, path: str) -> None:
    html = viewer.page(path)

    assert html.count("<h1") == 1
    assert "· Palaver</title>" in html


def test_home_shows_sessions_activity_and_projects(viewer: Viewer) -> None:
    text = text_of(viewer.page("/"))

    assert "Recent sessions" in text
    assert "Activity" in text
    assert "Projects" in text


def test_sessions_are_counted_without_sub_agents_on_every_page(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        counts, indexed = archive.store.session_list.count_by_project(), archive.store.sessions.count_indexed()
    total = sum(counts.values())

    assert total < indexed
    assert f"{total} sessions and {indexed - total} of sub-agents" in text_of(viewer.page("/"))
    assert f"Sessions {total} and {indexed - total} of sub-agents" in text_of(viewer.page("/archive"))
    home = viewer.page("/")
    projects = re.findall(r'href="/view(/sessions\?project=[^"]+)"[^>]*>[^<]*</a><span[^>]*>(\d+) session', home)
    assert projects
    for address, shown in projects:
        assert f"{shown} session" in text_of(viewer.page(unescape(address)))


def test_filters_of_sessions_are_in_the_address(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        project = archive.store.sessions.totals_by_project()[0]

    text = text_of(viewer.page(f"/sessions?project={project.name}&subagents=1"))

    assert f"{project.sessions} session" in text
    assert f"Project: {project.name}" in text


def test_usage_has_a_row_for_each_group_and_the_total(viewer: Viewer) -> None:
    by_month = text_of(viewer.page("/usage?by=month"))
    assert "List price, not your bill" in by_month
    assert "Month List price in percent of the highest List price Input Output" in by_month, (
        "Columns without any value are left out."
    )
    assert re.search(r"2026-05 \S+ 36 636", by_month.replace("under ", ""))
    assert "Total 57 replies, 6 sessions $0.05 228 3,694" in by_month
    days = re.search(r'href="/view(/usage\?[^"]*by=day[^"]*)"[^>]*>2026-05<', viewer.page("/usage?by=month"))
    assert days
    assert "36 636" in text_of(viewer.page(unescape(days[1]))).partition("Total")[2]

    [link] = set(
        re.findall(r'href="/view(/sessions/7e05[^"]*)"', viewer.page("/usage?by=session&project=seed-library"))
    )
    assert "Page the catalogue" in viewer.page(link)
    assert "2026-03" not in text_of(viewer.page("/usage?by=month&after=2026-04-01"))


def test_a_session_shows_its_tokens_and_their_price(viewer: Viewer) -> None:
    shown = text_of(viewer.page("/sessions/3a17e5d0-91f4-4b8a-a2e6-7d3c0b5f8204/tokens?fragment=1"))

    assert re.fullmatch(
        r"\d+ tokens out, \d+ in with sub-agents: \d+ tokens out, \d+ in list price under \$0\.01", shown
    )


def test_an_edited_file_finds_its_sessions(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        edit = archive.store.edits.newest(None)[0]

    assert "data-row" in viewer.page(f"/sessions?subagents=1&edited={Path(edit.path).name}")
    assert "No session matches" in viewer.page("/sessions?edited=no/such/file")


def test_an_invalid_date_is_explained(viewer: Viewer) -> None:
    assert "invalid date" in text_of(viewer.page("/sessions?after=tomorow", 400)).lower()


def test_a_hit_opens_its_session_at_the_evidence(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        [detail] = archive.search.details(["obs-18"])

    html = viewer.page("/items/obs-18")
    link = f"/view/sessions/{detail.session_id}?item=obs-18&line={detail.start_line}"
    answer = viewer.client.get(link, follow_redirects=False)

    assert f"{link}#L{detail.start_line}" in unescape(html)
    assert answer.headers["location"].endswith(f"?part=1&line={detail.start_line}#L{detail.start_line}")
    assert detail.observation.name in text_of(html)


def test_an_unknown_id_is_reported(viewer: Viewer) -> None:
    assert "obs-999999" in text_of(viewer.page("/items/obs-999999", 404))
    assert "mem_999999" in text_of(viewer.page("/memories/mem_999999", 404))


def test_words_of_the_command_open_the_search(viewer: Viewer) -> None:
    answer = viewer.client.get("/view/find?q=port in use", follow_redirects=False)

    assert answer.headers["location"] == "/view/search?q=port+in+use"


def test_a_search_for_an_id_leads_to_its_item_or_session(viewer: Viewer) -> None:
    session = "3a17e5d0-91f4-4b8a-a2e6-7d3c0b5f8204"
    [item, *_] = re.findall(r"/items/(obs-\d+)", viewer.page("/observations"))
    addresses = dict.fromkeys((item, item.upper().replace("-", "_")), f"items/{item}")
    addresses |= {"ex-1": "items/ex-1", session[:8]: f"sessions/{session}"}

    for text, address in addresses.items():
        html = viewer.page(f"/search?q={text}")
        assert f'is the ID of <a href="/view/{address}">' in html
        assert "No hits" not in html
    assert "is the ID of" not in viewer.page("/search?q=obs-999999")


def test_an_empty_result_is_explained(viewer: Viewer) -> None:
    assert "No match for zzzqqq" in text_of(viewer.page("/search?q=zzzqqq"))


def test_every_facet_of_a_search_leads_to_hits(viewer: Viewer) -> None:
    html = viewer.page("/search?q=tide")
    facets = re.findall(r'href="/view(/search\?q=tide&amp;(?:project|type|kind)=[^"]*)"', html)

    assert facets
    for address in facets:
        assert 'class="hit"' in viewer.page(unescape(address))


def test_scores_are_explained_on_request(viewer: Viewer) -> None:
    assert "Score 0." in text_of(viewer.page("/search?q=tide&explain=1"))
    assert "Score 0." not in text_of(viewer.page("/search?q=tide"))


def test_an_empty_home_explains_itself(tmp_path: Path) -> None:
    with viewing(Home(tmp_path / "empty")) as opened:
        opened.enter()
        for path in ("/", "/sessions", "/search?q=port", "/observations", "/archive", "/items/obs-1"):
            assert "palaver up" in text_of(opened.page(path))


def test_a_memory_is_edited_forgotten_and_restored(own: Viewer, tmp_path: Path) -> None:
    with Archive(Home(tmp_path / "own")) as archive:
        stored = archive.memories.remember(Memory("Use tabs", origin=Origin.HUMAN)).stored

    own.submit(f"/memories/{stored.id}/edit", {"content": "Use spaces"})
    assert "Use spaces" in text_of(own.page("/memories"))
    assert "This memory is forgotten" in own.submit(f"/memories/{stored.id}/forget", {})
    assert "Use spaces" not in text_of(own.page("/memories"))
    own.submit(f"/memories/{stored.id}/undo", {})
    assert "Use spaces" in text_of(own.page("/memories"))


def test_a_declined_proposal_is_approved_and_not_restored(own: Viewer, tmp_path: Path) -> None:
    memory = Memory("Always use tabs", "preference", origin=Origin.HUMAN)
    with Archive(Home(tmp_path / "own")) as archive:
        decline(archive.memories.store, PreferenceCandidate("x", memory, "/x.jsonl", 1, Reason.LASTING, "/x"))
        [stored] = [stored for stored in archive.store.memories.all() if stored.memory.content == memory.content]

    page = text_of(own.page(f"/memories/{stored.id}"))

    assert "You declined this proposal" in page
    assert "Approve" in page
    assert "Restore" not in page


def test_an_exchange_is_forgotten_after_a_preview_and_restored(own: Viewer) -> None:
    preview = own.page("/forget?target=obs-18")
    token = preview.partition('name="confirm" value="')[2].partition('"')[0]

    assert "Forget this exchange?" in preview
    assert re.search(r"<b>You:</b> \w+", preview)
    assert "Nothing was forgotten" in own.submit("/forget", {"target": "obs-18", "confirm": "other"})
    assert "Forgotten." in own.submit("/forget", {"target": "obs-18", "confirm": token})
    own.page("/items/obs-18", 404)
    assert "Restored." in own.submit("/deletions/undo", {"deletion": "1"})


def test_past_deletions_name_their_sessions_and_prompts_until_the_erasure(own: Viewer, tmp_path: Path) -> None:
    home = Home(tmp_path / "own")
    with Archive(home) as archive:
        [detail] = archive.search.details(["obs-18"])
        [item] = archive.store.items.load([18]).values()
        prompt = archive.store.exchanges.load([item.exchange])[item.exchange].exchange.prompt[:60]
        deletions = archive.deletions
        number = deletions.delete(DeletionRequest(("obs-18",)), deletions.preview(DeletionRequest(("obs-18",))).token)

    page = own.page("/deletions")
    assert detail.session_title in text_of(page)
    assert f"“{prompt}" in unescape(text_of(page))
    assert f'href="/view/sessions/{detail.session_id}"' in page
    with Archive(home) as archive:
        archive.deletions.erase(number.number or 0)
        assert all(deletion.summary.titles == () for deletion in archive.deletions.history())
    page = text_of(own.page("/deletions"))
    assert detail.session_title not in page
    assert prompt not in unescape(page)


def test_pinned_sessions_are_first_and_tags_filter(own: Viewer) -> None:
    listed = re.findall(r'href="(/view/sessions/[^"]*)" data-row', own.page("/sessions"))
    fields = {"title": "Ebb & flow", "tags": "#Tides, later", "pinned": "1"}

    page = text_of(own.submit(f"{listed[-1].removeprefix('/view')}/label", fields))

    assert "Ebb &amp; flow" in page
    assert "Pinned # Tag later # Tag tides" in page
    for path in ("/", "/sessions"):
        assert re.findall(r'href="(/view/sessions/[^"]*)" data-row', own.page(path))[0] == listed[-1]
    assert re.findall(r'href="(/view/sessions/[^"]*)" data-row', own.page("/sessions?tag=tides")) == [listed[-1]]
    for query in ("ebb+flow", "tag:tides", "%23later"):
        searched = own.page(f"/search?q={query}").partition("Sessions with this title or tag")[2]
        assert re.findall(r'href="(/view/sessions/[^"]*)" data-row', searched)[0] == listed[-1]
    own.submit(f"{listed[-1].removeprefix('/view')}/label", {"title": "", "tags": "later"})
    assert "No session matches" in own.page("/sessions?tag=tides")
    assert re.findall(r'href="(/view/sessions/[^"]*)" data-row', own.page("/sessions")) == listed
    assert "Invalid tag: a*b" in own.submit(f"{listed[-1].removeprefix('/view')}/label", {"tags": "a*b"}, 400)


def test_a_dismissed_fact_is_left_out_of_outlines(own: Viewer, tmp_path: Path) -> None:
    """Open items are collected from outlines."""

    def facts() -> tuple[str, ...]:
        with Archive(Home(tmp_path / "own")) as archive:
            page = archive.search.sessions(Query.newest(by="session"))
            return next(session.facts for session in page.sessions if session.facts)

    before = facts()
    page = text_of(own.submit("/dismiss", {"item": before[-1]}))

    assert "Dismissed: " in page
    assert facts() == before[:-1]
    own.submit("/dismiss", {"item": before[-1], "undo": "1"})
    assert facts() == before


def test_a_pinned_session_of_a_sub_agent_is_on_the_home_page(own: Viewer) -> None:
    rows = r'href="(/view/sessions/[^"]*)" data-row'
    [subagent] = set(re.findall(rows, own.page("/sessions?subagents=1"))) - set(re.findall(rows, own.page("/sessions")))

    own.submit(f"{subagent.removeprefix('/view')}/label", {"pinned": "1"})

    assert re.findall(rows, own.page("/"))[0] == subagent


def test_the_sub_agents_of_a_session_are_listed(viewer: Viewer) -> None:
    session = "/sessions/3a17e5d0-91f4-4b8a-a2e6-7d3c0b5f8204"
    [link] = re.findall(r'href="/view(/sessions\?parent=[^"]*)"', viewer.page(session))

    title = re.search(r"<h1>(.*?)</h1>", viewer.page(session))
    assert title
    assert viewer.page(link).count("data-row") == 1
    assert f"Sub-agents of “{title[1]}”" in viewer.page(link)


def test_the_calendar_accounts_for_every_exchange(own: Viewer, tmp_path: Path) -> None:
    with Store.open(tmp_path / "own" / "palaver.db") as store:
        database = store._database  # pyright: ignore[reportPrivateUsage]
        keys = database.numbers("SELECT key FROM item WHERE kind = 'exchange' ORDER BY key")
        database.run("UPDATE item SET at = NULL WHERE key = ?", (keys[0],))
        database.run("UPDATE item SET at = 1000 WHERE key = ?", (keys[1],))
    total = len(keys)
    page = text_of(own.page("/"))

    assert f"{total} exchanges, " in page
    assert f"{total - 2} exchanges on" in page
    assert "1 earlier exchange. 1 exchange without a date." in page


def test_home_and_archive_state_the_same_verdict(own: Viewer, tmp_path: Path) -> None:
    for path in (tmp_path / "own", *(tmp_path / "own").rglob("*")):
        path.chmod(0o700)
    healthy = "Everything is archived; no watcher is running"
    assert text_of(own.page("/archive/verdict")) == healthy
    assert f"{healthy}. New sessions are archived only when" in text_of(own.page("/archive/checks"))
    (tmp_path / "own" / "palaver.db").chmod(0o644)

    broken = "1 problem: permissions; no watcher is running"
    assert text_of(own.page("/archive/verdict")) == broken
    checks = text_of(own.page("/archive/checks"))
    assert f"{broken}. permissions other users can read" in checks
    assert checks.count("other users can read") == 1


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/open?project=nosuch", 200, "Unknown project: nosuch. All projects"),
        ("/usage?after=foo", 400, "Invalid date format. Use YYYY-MM-DD"),
        ("/memories/review?approved=mem-999", 200, "Proposed rules"),
    ],
)
def test_an_address_with_an_invalid_value_has_a_page(viewer: Viewer, path: str, status: int, text: str) -> None:
    """The page names what is invalid, or omits what was deleted."""
    page = text_of(viewer.page(path, status))

    assert text in page
    assert "Stored:" not in page


def test_agents_have_as_many_sessions_as_in_the_status(viewer: Viewer, built: Home) -> None:
    """Both count sub-agents."""
    page = viewer.page("/archive")
    counts = re.findall(r'agent=([\w-]+)&amp;subagents=1">.*?<td class="num">([\d,]+)<', page)

    assert "Sessions with sub-agents" in page
    assert {name: int(number.replace(",", "")) for name, number in counts} == {
        agent.agent: agent.sessions for agent in status_of(built).agents if agent.sessions
    }


def test_all_open_items_of_a_project_are_listed_and_dismissed(own: Viewer, tmp_path: Path) -> None:
    facts = tuple(f"{OPEN}Write page {number} of the tide manual" for number in range(12))
    with Archive(Home(tmp_path / "own")) as archive, archive.store.transaction():
        [number] = archive.store.session_list.page(SessionFilter(), 1)
        project, first = archive.store.sessions.load(number).project, archive.store.summaries.conversation(number)[0]
        proof = tuple(Evidence(3, 3, "") for _ in facts)
        card = Observation(
            ObservationType.GENERAL, f"{SUMMARY}Tide manual", facts=facts, evidence=proof, extractor="test"
        )
        archive.store.summaries.put(number, first, card)

    assert re.search(r'/sessions/[^"]+\?line=3#L3">line 3</a>', own.page("/"))
    assert own.page("/").count("Leave this out of the list") == 8
    page = own.page(f"/open?project={project}")
    items = [unescape(item) for item in re.findall(r'name="item" value="([^"]*)"', page)]
    assert items == list(facts)
    dismissed = own.submit("/dismiss", {"item": items[0], "all": "1"})
    assert "Dismissed: " in text_of(dismissed)
    assert dismissed.count("Leave this out of the list") == len(items) - 1
    assert "Open and next · Palaver" in dismissed
    page = own.page("/open/dismissed")
    assert [unescape(item) for item in re.findall(r'name="item" value="([^"]*)"', page)] == items[:1]
    restored = own.submit("/dismiss", {"item": items[0], "undo": "1", "all": "1"})
    assert restored.count("Leave this out of the list") == len(items)
    assert "You dismissed no item" in own.page("/open/dismissed")


def test_usage_by_day_has_bars_with_text(viewer: Viewer) -> None:
    """The longest bar is that of the highest list price. Groups that are no periods have no bars."""
    page = viewer.page("/usage?by=day")
    shares = [int(share) for share in re.findall(r'aria-label="(\d+) %"', page)]

    assert len(shares) == len(re.findall(r'<tr><th scope="row"><a', page)) > 1
    assert max(shares) == 100
    assert "%" not in viewer.page("/usage?by=model").partition("<tbody>")[2]


def test_usage_names_what_was_deleted(own: Viewer) -> None:
    """A deletion lowers the usage. Undoing it restores the usage."""
    before = own.page("/usage?by=session")
    [session, *_] = re.findall(r'href="/view/sessions/([^"]+)"', before)
    token = re.findall(r'name="confirm" value="([^"]*)"', own.page(f"/forget?target={session}"))[0]
    own.submit("/forget", {"target": session, "confirm": token})

    after = own.page("/usage?by=session")

    assert "deleted" not in text_of(before)
    assert re.search(r"deleted: in the whole archive, \d+ exchanges of 1 session", text_of(after))
    assert f"/sessions/{session}" not in after
    number = re.findall(r'name="deletion" value="(\d+)"', own.page("/deletions"))[0]
    own.submit("/deletions/undo", {"deletion": number})
    assert own.page("/usage?by=session") == before


def test_a_session_with_usage_and_without_exchanges_has_no_link(own: Viewer, tmp_path: Path) -> None:
    """Its page does not exist. The filter names its project, which no other page lists."""
    [session, *_] = re.findall(r'href="/view/sessions/([^"]+)"', own.page("/usage?by=session"))
    with Archive(Home(tmp_path / "own")) as archive, archive.store.transaction():
        [number] = archive.store.sessions.beginning_with(session)
        project = archive.store.sessions.load(number).project
        same = [key for key, other in archive.store.sessions.all().items() if other.project == project]
        for key in same:
            archive.store.exchanges.delete(archive.store.summaries.conversation(key))

    page = own.page(f"/usage?by=session&project={quote(project)}")

    assert f"/sessions/{session}" not in page
    assert f"<option selected>{project}</option>" in page


def test_older_open_items_are_folded(own: Viewer, tmp_path: Path) -> None:
    """Current items are at most two weeks older than the latest session, or than the latest one of the project."""
    with Archive(Home(tmp_path / "own")) as archive, archive.store.transaction():
        numbers = archive.store.session_list.page(SessionFilter(), 99)
        sessions = archive.store.sessions.several(numbers)
        latest = sessions[numbers[0]].ended or 0
        old = next(number for number in numbers if latest - (sessions[number].ended or 0) > 15 * 86_400_000)
        for number, name in ((numbers[0], "new"), (old, "old")):
            facts = (f"{OPEN}Write the {name} page of the tide manual",)
            card = Observation(ObservationType.GENERAL, f"{SUMMARY}Tide manual", facts=facts, extractor="test")
            archive.store.summaries.put(number, archive.store.summaries.conversation(number)[0], card)

    current, older = own.page("/open").split("<details>")
    assert "the new page" in current
    assert "the old page" in older
    assert "the old page" not in own.page("/")
    in_project = own.page(f"/open?project={quote(sessions[old].project)}")
    assert "the old page" in in_project.partition("<details>")[0]


def test_sessions_are_filtered_by_their_ending(own: Viewer, tmp_path: Path) -> None:
    """A session is listed under its worst ending only, which is its mark. The title does not repeat it."""
    names = list(ENDINGS)
    with Archive(Home(tmp_path / "own")) as archive, archive.store.transaction():
        numbers = archive.store.session_list.page(SessionFilter(), len(ENDINGS))
        for place, (number, ending) in enumerate(zip(numbers, names, strict=True)):
            title = f"{SUMMARY}Tide manual {number} ({ending})"
            facts = tuple(f'{ENDINGS[name]}`make` said “no, "Open: x”' for name in reversed(names[place:]))
            card = Observation(ObservationType.GENERAL, title, facts=facts, extractor="test")
            archive.store.summaries.put(number, archive.store.summaries.conversation(number)[0], card)

    for number, ending in zip(numbers, names, strict=True):
        page = own.page(f"/sessions?ending={quote(ending)}")
        assert re.findall("data-row>([^<]*)</a> <span [^>]*>([^<]*)<", page) == [
            (f"Tide manual {number}", ending.capitalize())
        ]
    assert "No session matches" in own.page("/sessions?ending=unknown")
    offered = r'<option value="([^"]*)">[^<]* \(1\)</option>'
    assert re.findall(offered, own.page("/sessions")) == names
    assert re.findall(offered, own.page("/sessions?agent=none")) == []


def test_sub_agents_are_listed_too_or_alone(viewer: Viewer) -> None:
    def rows(address: str) -> set[str]:
        return set(re.findall(r'href="/view/sessions/([^"]*)" data-row', viewer.page(address)))

    assert rows("/sessions?subagents=only") == rows("/sessions?subagents=1") - rows("/sessions") != set()


def test_a_file_has_a_page_with_its_edits_over_all_sessions(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        edits = archive.store.edits.newest(None)
    path = edits[0].absolute_path
    same = [edit for edit in edits if edit.absolute_path == path]

    for asked in (path, Path(path).name):
        html = viewer.page(f"/files?path={asked}")
        assert f"Edits of {'/'.join(Path(asked).parts[-2:])}" in text_of(html)
        assert html.count('class="edited"') >= len(same)
        for link in re.findall(r'href="/view(/sessions/[^"]*/edit\?[^"]*)"', html):
            assert 'class="diff"' in viewer.page(unescape(link))
        for link in re.findall(r'href="/view(/sessions/[^"]*\?item=[^"]*)"', html):
            viewer.page(link)
        [toggled] = re.findall(r'href="/view(/files[^"]*open=all[^"]*)"', html)
        opened = viewer.page(unescape(toggled))
        assert opened.count('class="diff"') == opened.count("transcript line") > 0
        assert unescape(re.findall(r'href="/view(/files[^"]*)">Close all', opened)[0]).startswith("/files?path=")


def test_the_list_of_observations_has_as_many_rows_as_it_counts(viewer: Viewer) -> None:
    """All observations of an exchange are listed, on as many pages as they need."""

    def listed(path: str) -> list[str]:
        html = viewer.page(path)
        older = re.search(r'href="/view([^"]*)" rel="next"', html)
        return [
            *re.findall(r'href="/view/items/([^"]*)" data-row', html),
            *(listed(unescape(older[1])) if older else ()),
        ]

    counts = {
        unescape(address): int(count)
        for address, count in re.findall(
            r'href="/view([^"]*)">\w+ <span class="muted num">(\d+)<', viewer.page("/observations")
        )
    }

    assert {address: len(set(listed(address))) for address in counts} == counts
    assert len(listed("/observations")) == sum(counts.values())
    [project, *_] = re.findall(r"<option>([^<]+)</option>", viewer.page("/observations"))
    own = f"/observations?project={quote(project)}"
    assert f"{len(listed(own))} observations" in text_of(viewer.page(own))


def test_tests_and_notes_are_listed_only_on_request(own: Viewer, tmp_path: Path) -> None:
    """Cards of sessions are never listed: the sessions have a list of their own."""
    with Archive(Home(tmp_path / "own")) as archive, archive.store.transaction():
        [number] = archive.store.session_list.page(SessionFilter(), 1)
        key = archive.store.summaries.conversation(number)[0]
        found = [Observation(kind, f"Tide {kind}", extractor="test") for kind in ObservationType]
        archive.store.observations.replace(key, number, found, "test")
        card = Observation(ObservationType.GENERAL, f"{SUMMARY}Tide manual", extractor="test")
        archive.store.summaries.put(number, key, card)

    page = own.page("/observations")

    assert ", without 2 tests and notes" in text_of(page)
    assert "Tide decision" in page
    assert not {"Tide test", "Tide general"} & set(re.findall("Tide [a-z]+", page))
    for kind in ("test", "general"):
        assert f"Tide {kind}" in own.page(f"/observations?type={kind}")
    assert "Tide manual" not in re.findall("data-row>([^<]*)<", own.page("/observations?type=general"))


def test_evidence_of_an_observation_repeats_no_fact(viewer: Viewer) -> None:
    """A fact that is a quote itself has the link to its line. No quote repeats the text above it."""
    items, linked = re.findall(r"/items/(obs-\d+)", viewer.page("/observations")), 0
    for item in dict.fromkeys(items):
        page = viewer.page(f"/items/{item}")
        facts = re.findall(r"<li>(?!<a)(.*?)(?: <a class=\"at\".*?)?</li>", page.partition('class="facts"')[2])
        quotes = re.findall("<blockquote>(.*?)</blockquote>", page)
        assert not {*facts} & {*quotes}
        above = text_of(page.partition("<blockquote>")[0])
        assert not [quote for quote in quotes if text_of(quote) in above]
        linked += page.partition('class="facts"')[2].partition("</ul>")[0].count('class="at"')

    assert linked


def test_types_of_observations_have_names_for_people(viewer: Viewer) -> None:
    """Addresses have the types."""
    chips = re.findall(r'href="/view/observations\?type=([\w-]+)"[^>]*>(\w+) ', viewer.page("/observations"))

    assert chips == [(str(kind), kind.label) for kind in ObservationType if kind in dict(chips)]
    assert len(chips) > 1


def test_nothing_is_forgotten_without_a_target(own: Viewer) -> None:
    """A request without a target would select the whole archive."""
    own.page("/forget", 400)
    own.submit("/forget", {"target": " ", "confirm": ""}, 400)


def contents(root: Path) -> dict[str, str]:
    """Return the digest of each file below a folder."""
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in root.rglob("*") if path.is_file()}


def test_a_read_only_viewer_changes_no_byte(built: Home, tmp_path: Path) -> None:
    shutil.copytree(built.root, tmp_path / "own")
    before = contents(tmp_path / "own")
    with viewing(Home(tmp_path / "own", read_only=True)) as opened:
        opened.enter()
        for path in (*PAGES, "/memories/review", "/items/obs-18", "/forget?target=obs-18"):
            opened.page(path)
        token = opened.page("/forget?target=obs-18").partition('name="confirm" value="')[2].partition('"')[0]
        opened.submit("/forget", {"target": "obs-18", "confirm": token}, 403)
        session = re.findall(r'href="/view(/sessions/[^"]*)" data-row', opened.page("/sessions"))[0]
        assert "Rename, tag or pin" not in opened.page(session)
        opened.submit(f"{session}/label", {"title": "Mine"}, 403)
        opened.submit("/dismiss", {"item": "Open: all"}, 403)

    assert contents(tmp_path / "own") == before


PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=//evil.example/x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'><iframe src=javascript:alert(1)>",
    "</title><style>*{display:none}</style>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)


class Foreign(HTMLParser):
    """Collector of elements and attributes that no page of the viewer has."""

    def __init__(self) -> None:
        super().__init__()
        self.found = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"img", "iframe", "style", "object", "embed", "base"}:
            self.found.append(tag)
        for name, value in attrs:
            address = (value or "") if name in {"href", "src", "action", "hx-get"} else "/view/"
            if name.startswith("on") or not address.startswith(("/view", "#", "data:,")):
                self.found.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Viewer of an archive in which prompts, answers, branches, projects, titles and memories are hostile."""
    root = tmp_path_factory.mktemp("hostile")
    for number, payload in enumerate(PAYLOADS):
        common = {"sessionId": f"0000000{number}-aaaa-4bbb-8ccc-00000000000{number}", "cwd": f"/src/{payload}"}
        common |= {"gitBranch": payload, "version": "2.1", "timestamp": f"2026-03-0{number + 1}T10:00:00Z"}
        prompt = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": f"Fix {payload} port"}}
        said = [{"type": "text", "text": f"I fixed {payload} in the port. The root cause was {payload}."}]
        answer = {
            "role": "assistant",
            "id": f"m{number}",
            "model": payload,
            "content": said,
            "usage": {"input_tokens": 5},
        }
        lines: list[dict[str, Any]] = [
            prompt,
            {"type": "assistant", "uuid": f"a{number}", "parentUuid": f"u{number}", "message": answer},
        ]
        path = root / ".claude" / "projects" / "-src" / f"{common['sessionId']}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({**common, **line}) + "\n" for line in lines))
    home = Home(root / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([root / ".claude"]))
    with Archive(home) as archive:
        for payload in PAYLOADS:
            archive.memories.remember(Memory(f"Remember {payload}", type="fact", tags=("x",), origin=Origin.HUMAN))
    with viewing(home) as opened:
        yield opened.enter()


@pytest.mark.parametrize(
    "path",
    [
        *PAGES,
        "/usage?by=model",
        "/usage?by=session",
        "/items/ex-1",
        "/forget?target=ex-1",
        "/search?q=port&explain=1&by=session",
    ],
)
def test_hostile_text_stays_text(hostile: Viewer, path: str) -> None:
    parser = Foreign()
    parser.feed(hostile.page(path))

    assert parser.found == []


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("place", ["/search?q=", "/search?q=port&also=", "/search?q=x&project=", "/sessions?branch="])
def test_hostile_addresses_stay_text(hostile: Viewer, place: str, payload: str) -> None:
    parser = Foreign()
    parser.feed(
        hostile.client.get(f"/view{place}", params={"q": payload} if place.endswith("?q=") else {"x": payload}).text
    )
    parser.feed(hostile.client.get(f"/view{place}{payload}").text)

    assert parser.found == []


def test_a_snippet_shows_its_markdown_and_marks_words_outside_of_tags_and_entities() -> None:
    snippet = marked("- `code` & <b>code</b> **amp** codec", ["code", "amp", "<b>", "strong"])

    assert snippet == (
        "- <code><mark>code</mark></code> &amp; &lt;b&gt;<mark>code</mark>&lt;/b&gt; "
        "<strong><mark>amp</mark></strong> <mark>code</mark>c"
    )
    assert marked("a < b", []) == "a &lt; b"


def test_a_snippet_marks_no_stop_words_and_shows_no_rests_of_markdown() -> None:
    """The rest of a table and emphasis that is cut are no text. Commands keep their characters."""
    assert marked("with the tide", ["the", "tide"]) == "with the <mark>tide</mark>"
    assert marked("to be", ["to", "be"]) == "<mark>to</mark> <mark>be</mark>"
    assert marked("Fix** it `a ** b`", []) == "Fix it <code>a ** b</code>"
    assert marked("Port | Use |---|---| 80 | web", []).split() == ["Port", "Use", "80", "web"]
    assert marked("cat x | grep --y ----- z", []).split() == ["cat", "x", "|", "grep", "--y", "z"]


def test_a_resumed_session_has_dates_instead_of_a_length_in_days() -> None:
    start, day = 1_700_000_000_000, 86_400_000

    assert text_of(time_range(start, start + 2 * day)) == "14 Nov 2023 · 2 d"
    assert text_of(time_range(start, start + 525 * day)) == "14 Nov 2023 to 22 Apr 2025"
    assert text_of(time_range(None, start)) == "undated"


def test_amounts_and_counts_are_written_alike() -> None:
    assert token_counts("Compacted (auto, 998659 tokens before)") == "Compacted (auto, 998,659 tokens before)"
    assert row_price(UsageRow("a", cost=1, partial_replies=1)) == "under $0.01+"
    assert row_price(UsageRow("a", cost=1)) == "under $0.01"


def test_the_page_of_an_item_renders_its_markdown(viewer: Viewer, built: Home) -> None:
    with Archive(built) as archive:
        details = archive.search.details([f"ex-{number}" for number in range(1, 12)])
    formatted = [detail for detail in details if "`" in detail.observation.narrative]

    assert formatted
    for detail in formatted:
        assert (
            "<code>" in viewer.page(f"/items/{detail.id}").partition('class="md lines"')[2].partition("</section>")[0]
        )


def test_the_page_of_an_empty_archive_has_no_tables(tmp_path: Path) -> None:
    with Pipeline(Home(tmp_path / "home")) as pipeline:
        pipeline.run([])
    with viewing(Home(tmp_path / "home")) as opened:
        text = text_of(opened.enter().page("/archive"))

    assert "Nothing is archived yet" in text
    assert not [name for name in ("Sessions 0", "Coverage", "Secrets", "Kept only here", "Cost") if name in text]
