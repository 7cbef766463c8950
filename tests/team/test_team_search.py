"""Search in what a team shares, on a real PostgreSQL, with items that machines push over HTTP."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple
from uuid import UUID

import numpy as np
import psycopg
import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.errors import InvalidInput, InvalidLineRange, PathOutsideArchive, UnknownIds
from palaver.core.observation import SUMMARY, Evidence, Observation, ObservationType
from palaver.core.query import Filters, Query
from palaver.search.index.vector_index import packed
from palaver.search.model.embedding import Embedder
from palaver.team.protocol import Batch, ItemKind, SharedItem, SharedVector, TeamQuery
from palaver.team.server.candidates import TeamCandidates
from palaver.team.server.database import TeamDatabase, scope
from palaver.team.server.search_rows import DIMENSION
from palaver.team.server.team_index import TeamIndex
from palaver.team.server.vector_indexes import index_large_teams

from ..search.fake_embedder import FakeEmbedder
from .members import Machine, exchange, invited, item, item_id, memory
from .postgres import DatabaseUrls


class WideEmbedder(FakeEmbedder):
    """Embedder with vectors of the length that the server stores."""

    dimension = DIMENSION


MODEL = WideEmbedder()
KETTLE = "the brass kettle whistles on the stove"
NUMBERS = count()


class Kitchen(NamedTuple):
    """Two people of one team, and one person of another team."""

    ann: Machine
    bob: Machine
    cid: Machine
    pool: TeamDatabase

    def search(self, machine: Machine) -> TeamIndex:
        """Return the search of the person with a machine."""
        return TeamIndex(self.pool, UUID(machine.joined.team), UUID(machine.joined.person), MODEL)


@pytest.fixture
def kitchen(url: str, urls: DatabaseUrls, pool: TeamDatabase) -> Kitchen:
    """Return two new teams in the database of this module."""
    suffix = next(NUMBERS)
    teams = (("ann", "red"), ("bob", "red"), ("cid", "blue"))
    ann, bob, cid = (Machine(url, invited(urls, person, f"{team} {suffix}")) for person, team in teams)
    return Kitchen(ann, bob, cid, pool)


def embedded(shared: SharedItem, text: str, part: int = 0, embedder: Embedder = MODEL) -> SharedItem:
    """Return an item with the vector of a text."""
    embeddings = embedder.read([text])
    data = b64encode(embeddings.vectors[0].astype("<f2").tobytes()).decode()
    bits = b64encode(packed(embeddings.tokens[0])).decode()
    return replace(shared, vectors=(*shared.vectors, SharedVector(part, data, bits)))


def push(machine: Machine, *items: SharedItem, model: str = MODEL.name) -> None:
    """Push items with the name of the embedding model."""
    batch = machine.batch(items)
    machine.cursor = machine.send(Batch(batch.epoch, batch.start, batch.end, model, batch.items)).cursor


def said(name: str, *texts: str, session: str = "", ordinal: int = 0) -> SharedItem:
    """Return an exchange with a prompt and answers, one on each line, which begin at line 1 + 10 * ordinal."""
    line = 1 + 10 * ordinal
    prompt = Turn(line, Speaker.HUMAN, Kind.PROMPT, texts[0])
    answers = (Turn(line + at, Speaker.ASSISTANT, Kind.PROSE, text) for at, text in enumerate(texts[1:], 1))
    value = Exchange(ordinal, Span(line, line + len(texts) - 1, 0, 10), (prompt, *answers), 5 + ordinal, None)
    home = item_id(session) if session else ""
    return item(ItemKind.EXCHANGE, value, name, session=home, path="a.jsonl", at=5 + ordinal)


def learned(name: str, event: str, title: str, session: str = "", line: int = 1) -> SharedItem:
    """Return an observation of an exchange."""
    value = Observation(ObservationType.DECISION, title, evidence=(Evidence(line, line, ""),), concepts=("tea",))
    home = item_id(session) if session else ""
    return item(ItemKind.OBSERVATION, value, name, event=item_id(event), session=home)


def shared_session(name: str) -> SharedItem:
    """Return a session of an agent."""
    return item(ItemKind.SESSION, Session("codex", f"native-{name}", title=name), name)


def titles(kitchen: Kitchen, machine: Machine, words: str, filters: Filters = Filters()) -> list[str]:  # noqa: B008
    """Return the titles of the hits of a search."""
    return [hit.title for hit in kitchen.search(machine).find(replace(Query.parse(words), filters=filters)).hits]


def test_a_colleague_finds_what_a_person_shares(kitchen: Kitchen) -> None:
    """A hit names the person and the project, and its snippet shows the match."""
    push(kitchen.ann, embedded(exchange(KETTLE), KETTLE))

    [hit] = kitchen.search(kitchen.bob).hits(TeamQuery("brass kettle")).hits
    assert (hit.person, hit.project, hit.kind) == ("ann", "spoon", "exchange")
    assert "brass kettle" in hit.snippet
    assert titles(kitchen, kitchen.cid, "brass kettle") == []


def test_an_observation_represents_its_exchange(kitchen: Kitchen) -> None:
    """A hit shows the observation whose evidence covers the match, also if it arrived before its exchange."""
    push(kitchen.ann, learned("o", "e", "Use the brass kettle"))
    assert titles(kitchen, kitchen.bob, "brass kettle") == ["Use the brass kettle"]

    push(kitchen.ann, said("e", KETTLE))
    index = kitchen.search(kitchen.bob)
    [hit] = index.find(Query.parse("brass kettle")).hits
    assert (hit.kind, hit.title) == ("observation", "Use the brass kettle")
    [detail] = index.details([hit.id])
    assert detail.observation.concepts == ("tea",)
    assert detail.project == "spoon (ann)"


def test_details_and_lines_are_those_that_were_shared(kitchen: Kitchen) -> None:
    """Details accept both forms of an ID. The path of a hit leads to its conversation."""
    push(kitchen.ann, shared_session("s"), said("one", KETTLE, "It does.", session="s"))
    push(kitchen.ann, said("two", "boil the eggs", "For how long?", session="s", ordinal=1))
    index = kitchen.search(kitchen.bob)

    [hit] = index.find(Query.parse("boil eggs")).hits
    assert index.details([hit.id]) == index.details([item_id("two")])
    excerpt = index.read(hit.path, hit.start_line, hit.end_line)
    assert next(turn.text for each in excerpt.exchanges for turn in each.turns) == "boil the eggs"
    whole = index.read(hit.path)
    assert (whole.session_id, whole.total_lines, len(whole.exchanges)) == ("native-s", 12, 2)
    with pytest.raises(InvalidLineRange):
        index.read(hit.path, 13)
    for machine in (kitchen.cid, kitchen.ann):
        other = kitchen.search(machine)
        if machine is kitchen.ann:
            assert other.read(hit.path) == whole
            continue
        with pytest.raises(UnknownIds):
            other.details([item_id("two")])
        with pytest.raises(UnknownIds):
            other.details([hit.id])
        with pytest.raises(PathOutsideArchive):
            other.read(hit.path)


def test_tool_output_is_not_searched(kitchen: Kitchen) -> None:
    """A search for the output of tools is refused with a sentence."""
    with pytest.raises(InvalidInput, match="output of tools in a team cannot be searched"):
        kitchen.search(kitchen.ann).find_output("kettle", Filters())


def test_a_session_has_a_limited_number_of_hits(kitchen: Kitchen) -> None:
    """At most three hits are of one session, unless each hit is a session."""
    push(
        kitchen.ann,
        shared_session("s"),
        *(said(f"{n}", f"kettle number {n}", session="s", ordinal=n) for n in range(6)),
    )
    push(kitchen.bob, said("other", "one more kettle"))
    index = kitchen.search(kitchen.ann)

    assert len(index.find(Query.parse("kettle")).hits) == 4
    assert len(index.find(Query.parse("kettle", per_session=0, limit=20)).hits) == 7
    by_session = index.find(Query.parse("kettle", by="session")).hits
    assert [hit.session_id for hit in by_session] == ["native-s"]


def test_a_session_is_represented_by_its_card(kitchen: Kitchen) -> None:
    """A search for sessions shows the card, also if another observation was shared later."""
    push(kitchen.ann, shared_session("s"), said("one", KETTLE, session="s"))
    card = Observation(ObservationType.GENERAL, f"{SUMMARY}Brass kettles")
    push(kitchen.ann, item(ItemKind.OBSERVATION, card, "card", event=item_id("one"), session=item_id("s")))
    push(kitchen.ann, learned("later", "one", KETTLE, session="s"))

    [hit] = kitchen.search(kitchen.bob).find(Query.parse("brass kettle", by="session")).hits
    assert (hit.type, hit.title) == ("session", "Brass kettles")


def test_pages_follow_each_other(kitchen: Kitchen) -> None:
    """The cursor of a page leads to the next hits, and the last page has none."""
    push(kitchen.ann, *(said(f"{n}", f"kettle number {n}") for n in range(5)))
    index, query, pages = kitchen.search(kitchen.bob), Query.parse("kettle", limit=2), list[str]()
    while True:
        page = index.find(query)
        pages += [hit.title for hit in page.hits]
        if not page.cursor:
            break
        query = replace(query, cursor=page.cursor)

    assert sorted(pages) == [f"kettle number {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(roles=("human",)), ["first kettle", "second kettle"]),
        (Filters(roles=("assistant",)), ["second kettle"]),
        (Filters(agents=("codex",)), ["second kettle"]),
        (Filters(projects=("spoon",)), ["first kettle", "second kettle"]),
        (Filters(projects=("fork",)), []),
        (Filters(after=6), ["second kettle"]),
        (Filters(before=6), ["first kettle"]),
        (Filters(types=("decision",)), []),
        (Filters(sessions=("native-",)), ["second kettle"]),
    ],
    ids=str,
)
def test_filters_select_hits(kitchen: Kitchen, filters: Filters, expected: list[str]) -> None:
    """Filters have the same meaning as on a machine."""
    push(kitchen.ann, said("1", "first kettle"), shared_session("s"))
    push(kitchen.ann, said("2", "second kettle", "A kettle again.", session="s", ordinal=1))

    assert sorted(titles(kitchen, kitchen.bob, "kettle", filters)) == expected


def test_a_quoted_phrase_matches_literally(kitchen: Kitchen) -> None:
    """Only entries with the phrase match, also in the text before a short exchange."""
    push(kitchen.ann, said("1", "the brass kettle"), said("2", "a kettle of brass"))

    assert titles(kitchen, kitchen.bob, '"brass kettle"') == ["the brass kettle"]


def test_a_short_exchange_is_found_by_the_text_before_it(kitchen: Kitchen) -> None:
    """The context comes from the same batch, or from an earlier one."""
    push(kitchen.ann, shared_session("s"), said("1", "about the brass kettle", session="s"))
    push(kitchen.ann, said("2", "polish it", session="s", ordinal=1))

    assert titles(kitchen, kitchen.bob, "polish kettle")[0] == "polish it"


@pytest.mark.parametrize("texts", [(), ("about the red cup",)], ids=["withdrawn", "replaced"])
def test_no_exchange_keeps_text_before_it_that_was_taken_back(
    kitchen: Kitchen, urls: DatabaseUrls, texts: tuple[str, ...]
) -> None:
    """The context of short exchanges follows withdrawals and changes of the exchanges before them."""
    push(kitchen.ann, shared_session("s"), said("0", "tea", session="s"))
    push(kitchen.ann, said("1", "about the brass kettle", session="s", ordinal=1))
    push(kitchen.ann, said("2", "polish it", session="s", ordinal=2))
    if texts:
        push(kitchen.ann, said("1", *texts, session="s", ordinal=1))
    else:
        kitchen.ann.push(withdrawn=[item_id("1")])

    team = kitchen.ann.joined.team
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            "SELECT body, stems FROM palaver.entry WHERE team = %s ORDER BY id", (team,)
        ).fetchall()
        counts = connection.execute(
            "SELECT entries FROM palaver.term WHERE team = %s AND term IN ('', 'tea', 'kettl')", (team,)
        ).fetchall()
    context = ["\n".join(("tea", *texts, "polish it"))] if texts else []
    assert [body for body, _ in rows if "polish" in body] == ["polish it", *context]
    assert not any("kettl" in stems for _, stems in rows)
    assert sorted(counts) == sorted([(len(rows),), (sum(" tea " in stems for _, stems in rows),)])


def test_vectors_of_another_model_are_not_compared(kitchen: Kitchen) -> None:
    """Items with vectors of another model are found by their words only."""
    push(kitchen.ann, embedded(exchange(KETTLE), KETTLE), model="other/1")

    assert titles(kitchen, kitchen.bob, "brass kettle") == [KETTLE]
    with kitchen.pool.transaction(UUID(kitchen.bob.joined.team), UUID(kitchen.bob.joined.person)) as connection:
        candidates = TeamCandidates(connection, UUID(kitchen.bob.joined.team), MODEL.name)
        assert len(candidates.nearest(MODEL.embed([KETTLE])[0], Filters(), 5)) == 0


def index_scans(urls: DatabaseUrls, team: str) -> int | None:
    """Return how often searches used the graph of a team, or None without one."""
    name = f"near_{team.replace('-', '')}"
    with psycopg.connect(urls.owner) as connection:
        row = connection.execute("SELECT idx_scan FROM pg_stat_all_indexes WHERE indexrelname = %s", (name,)).fetchone()
    return row[0] if row else None


def test_a_large_team_has_a_graph(kitchen: Kitchen, urls: DatabaseUrls) -> None:
    """The owner adds it once, and again after an interruption. Searches use it and find the same, also with filters."""
    texts = [f"{KETTLE} {number}" for number in range(30)]
    push(kitchen.ann, *(embedded(exchange(text), text) for text in texts))
    push(kitchen.cid, embedded(exchange(KETTLE), KETTLE))
    team, vector = kitchen.ann.joined.team, MODEL.embed([KETTLE])[0]

    def nearest(filters: Filters = Filters()) -> list[int]:  # noqa: B008
        with kitchen.pool.transaction(UUID(team), UUID(kitchen.bob.joined.person)) as connection:
            keys: list[int] = (
                TeamCandidates(connection, UUID(team), MODEL.name).nearest(vector, filters, 20).item.tolist()
            )
            connection.execute("SELECT pg_stat_force_next_flush()")
            return keys

    exact = nearest()
    assert team in index_large_teams(urls.owner, 20)
    assert kitchen.cid.joined.team not in index_large_teams(urls.owner, 20)
    assert nearest() == exact == nearest(Filters(projects=("spoon",)))
    assert index_scans(urls, team) == 1
    with psycopg.connect(urls.owner) as connection:
        broken = f"palaver.near_{team.replace('-', '')}"
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (broken,))
    assert nearest() == exact
    assert index_large_teams(urls.owner, 20) == [team]
    assert index_large_teams(urls.owner, 20) == []


def test_term_counts_follow_every_change(kitchen: Kitchen, urls: DatabaseUrls) -> None:
    """The counts equal those of the remaining entries, after replacements and withdrawals in any order."""
    push(kitchen.ann, said("1", "kettle kettle brass"), said("2", "kettle"), memory("a spoon"))
    push(kitchen.ann, said("1", "copper kettle"))
    kitchen.ann.push(withdrawn=[item_id("2")])
    kitchen.ann.push(withdrawn=[memory("a spoon").id])

    team = kitchen.ann.joined.team
    with psycopg.connect(urls.owner) as connection:
        counts: dict[str, int] = dict(
            connection.execute("SELECT term, entries FROM palaver.term WHERE team = %s", (team,)).fetchall()
        )
        left = connection.execute(
            "SELECT (SELECT count(*) FROM palaver.entry WHERE team = %(t)s)"
            ", (SELECT count(*) FROM palaver.embedding WHERE team = %(t)s)",
            {"t": team},
        ).fetchone()
    assert {term: number for term, number in counts.items() if number} == {"": 1, " ": 2, "copper": 1, "kettl": 1}
    assert left == (1, 0)


def candidates_of(kitchen: Kitchen, machine: Machine, team: UUID) -> Iterator[tuple[str, set[int]]]:
    """Yield each kind of candidates that a person gets if the application asks for the rows of a team."""
    vector = MODEL.embed([KETTLE])[0]
    with kitchen.pool.transaction(UUID(machine.joined.team), UUID(machine.joined.person)) as connection:
        rows = connection.execute("SELECT key FROM palaver.item").fetchall()
        yield "item", {key for (key,) in rows}
        everything = (["'kettl'", "'brass'"], [1.0, 1.0], "", -(1 << 62), 1 << 62, 1_000)
        rows = connection.execute(
            """SELECT e.item FROM palaver.text_candidates(%s, %s::real[], %s, %s, %s, %s) c
            JOIN palaver.entry e ON e.id = c.entry""",
            everything,
        ).fetchall()
        yield "text", {key for (key,) in rows}
        rows = connection.execute(
            "SELECT item FROM palaver.matching_items('', %s, %s)", (-(1 << 62), 1 << 62)
        ).fetchall()
        yield "matching", {key for (key,) in rows}
        candidates = TeamCandidates(connection, team, MODEL.name)
        yield "vectors", {*candidates.nearest(vector, Filters(), 1_000).item.tolist()}
        everyone = np.arange(1, 2_000)
        yield "events", {*candidates.of_events(vector, everyone).item.tolist()}
        yield "windows", {key for key, _ in candidates.windows(everyone.tolist(), with_context=True)}
        yield "sessions", {*candidates.sessions_of(everyone.tolist())}


def own_keys(urls: DatabaseUrls, machine: Machine) -> tuple[set[int], set[int]]:
    """Return the keys of the items of a team that a person may see, and those of the other items."""
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute("SELECT key, team, person, visibility FROM palaver.item").fetchall()
    visible = {
        key
        for key, team, person, visibility in rows
        if str(team) == machine.joined.team and (visibility == 2 or str(person) == machine.joined.person)
    }
    return visible, {row[0] for row in rows} - visible


def hide(urls: DatabaseUrls, names: Sequence[str]) -> None:
    """Make items visible to their owners only."""
    with psycopg.connect(urls.owner) as connection:
        keys = connection.execute("SELECT key FROM palaver.item WHERE id = ANY(%s)", ([*map(UUID, names)],)).fetchall()
        numbers = [key for (key,) in keys]
        connection.execute("UPDATE palaver.item SET visibility = 1 WHERE key = ANY(%s)", (numbers,))
        for table in ("entry", "embedding"):
            connection.execute(f"UPDATE palaver.{table} SET visibility = 1 WHERE item = ANY(%s)".encode(), (numbers,))


def test_no_candidate_is_foreign_or_hidden(kitchen: Kitchen, urls: DatabaseUrls) -> None:
    """Candidates contain every visible item and no other one, even if the application names a wrong team."""
    for machine in (kitchen.ann, kitchen.bob, kitchen.cid):
        name = machine.joined.person
        texts = [f"{KETTLE} {name} {number}" for number in range(4)]
        push(machine, *(embedded(exchange(text), text) for text in texts))
        hide(urls, [exchange(text).id for text in texts[:2]])
    for machine in (kitchen.ann, kitchen.bob, kitchen.cid):
        visible, others = own_keys(urls, machine)
        own = UUID(machine.joined.team)
        for kind, keys in candidates_of(kitchen, machine, own):
            assert keys & others == set(), kind
            assert keys == visible, kind
        foreign = UUID((kitchen.cid if machine is not kitchen.cid else kitchen.ann).joined.team)
        for kind, keys in candidates_of(kitchen, machine, foreign):
            assert keys & others == set(), kind


def test_without_a_team_there_are_no_candidates(kitchen: Kitchen) -> None:
    """Settings that are missing or empty give no rows."""
    push(kitchen.ann, exchange(KETTLE))
    team, person = UUID(kitchen.ann.joined.team), UUID(kitchen.ann.joined.person)
    for settings in ((None, None), (None, person)):
        with kitchen.pool.transaction() as connection:
            scope(connection, *settings)
            rows = connection.execute(
                "SELECT entry FROM palaver.text_candidates(%s, %s::real[], '', 0, %s, 10)",
                (["'kettl'"], [1.0], 1 << 62),
            ).fetchall()
            assert rows == []
            assert TeamCandidates(connection, team, MODEL.name).entries == 0


@pytest.mark.parametrize(
    "text", ["it's", "a\\b'c", "'; DROP TABLE x", "(a | b) & !c", "a:*", "%s %(x)s", "\u4e2d\u6587"]
)
def test_words_are_never_parsed_as_a_query(kitchen: Kitchen, text: str) -> None:
    """Punctuation of a query, of texts and of filters is compared and never interpreted."""
    push(kitchen.ann, exchange(f"kettle {text}"))
    index = kitchen.search(kitchen.bob)

    assert index.find(Query.parse(f"kettle {text}")).hits
    assert index.find(replace(Query.parse("kettle"), filters=Filters(projects=(text,), files=("it's",)))).hits == ()


def test_a_request_is_answered_as_json(kitchen: Kitchen) -> None:
    """Filters of a request are those of a search on a machine."""
    push(kitchen.ann, exchange(KETTLE))
    filters = Raw(json.encode(Filters(projects=("fork",))))

    assert kitchen.search(kitchen.bob).hits(TeamQuery("kettle", 5, filters)).hits == ()
