"""Mutation test: without the filters of the application, row security alone separates teams and people."""

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection, Cursor

from palaver.team.server import database as team_database
from palaver.team.server.database import TeamDatabase
from palaver.team.server.raw_objects import names_of
from palaver.team.server.raw_store import RawStore

from .members import Machine, exchange, full_copy, invited, memory, serving, usage
from .postgres import DatabaseUrls

TEAM = re.compile(r"(?:\w+\.)?(?:team|id) = (%\(team\)s)|(?:\w+\.)?team = (%s)")
PERSON = re.compile(r"(?:\w+\.)?person = (%s)")


class Mutation:
    """Rewriter of statements that removes filters, and counts them."""

    def __init__(self, *patterns: re.Pattern[str]) -> None:
        self.patterns, self.removed = patterns, set[str]()

    def __call__(self, query: Any) -> Any:
        if not isinstance(query, str) or query.lstrip().startswith("SELECT set_config"):
            return query
        mutated = query
        for pattern in self.patterns:
            mutated = pattern.sub(lambda match: f"{match[1] or match[match.lastindex or 0]}::uuid IS NOT NULL", mutated)
        if mutated != query:
            self.removed.add(query)
        return mutated


def mutated(method: Callable[..., Any], mutation: Mutation) -> Callable[..., Any]:
    """Return a method of psycopg that runs the mutation of its statement."""

    def run(self: object, query: object, *arguments: Any, **options: Any) -> Any:
        return method(self, mutation(query), *arguments, **options)

    return run


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Mutation]:
    """Return a function that removes the filters of a pattern from all later statements."""

    def start(*patterns: re.Pattern[str]) -> Mutation:
        mutation = Mutation(*patterns)
        for kind, name in ((Connection, "execute"), (Cursor, "executemany")):
            monkeypatch.setattr(kind, name, mutated(getattr(kind, name), mutation))
        return mutation

    return start


def rows(urls: DatabaseUrls, person: str) -> list[tuple[Any, ...]]:
    """Return all items, tombstones and machines of a person."""
    with psycopg.connect(urls.owner) as connection:
        return [
            row
            for table in ("item", "gone", "raw_object", "device", "token")
            for row in connection.execute(
                f"SELECT '{table}', x::text FROM palaver.{table} x WHERE person = %s ORDER BY 2".encode(), (person,)
            ).fetchall()
        ]


def teams(url: str, urls: DatabaseUrls) -> tuple[Machine, list[Machine]]:
    """Return a machine of one person, and machines of a colleague and of a person of another team, with items."""
    suffix = str(uuid4())
    ann, bob, cid = (
        Machine(url, invited(urls, f"{name} {suffix}", f"{team} {suffix}"))
        for name, team in (("ann", "red"), ("bob", "red"), ("cid", "blue"))
    )
    for machine in (ann, bob, cid):
        name = machine.joined.person_name
        one = exchange(f"{name} one")
        copy = full_copy(one, f"{name} output")
        machine.push([one, copy, exchange(f"{name} two"), memory(f"{name} m"), usage("2026-01-01", name)])
        machine.push(withdrawn=[exchange(f"{name} two").id])
    return ann, [bob, cid]


def work(ann: Machine, others: list[Machine]) -> list[object]:
    """Use every request of a member, also with IDs of others. Return the replies."""
    foreign = [exchange(f"{machine.joined.person_name} {number}") for machine in others for number in ("one", "two")]
    name = ann.joined.person_name
    replies: list[object] = [ann.status(), ann.shared()]
    replies.append(ann.push(withdrawn=[each.id for each in foreign]))
    one, three = exchange(f"{name} one"), exchange(f"{name} three")
    copies = [full_copy(shared, f"{name} longer output") for shared in (one, three, *foreign)]
    replies.append(ann.push([one, three, *copies]))
    replies += [ann.begin(), ann.status(), ann.leave(withdraw=True)]
    return [re.sub(r"[0-9a-f-]{36,}", "ID", str(reply)) for reply in replies]


@pytest.mark.parametrize("patterns", [(TEAM,), (TEAM, PERSON)], ids=["team", "team and person"])
def test_row_security_alone_separates_teams_and_people(
    pool: TeamDatabase,
    raw_store: RawStore,
    urls: DatabaseUrls,
    mutate: Callable[..., Mutation],
    patterns: tuple[re.Pattern[str], ...],
) -> None:
    """With each filter removed, no row of another team or person is changed, and none of another team is returned."""
    with serving(pool, raw_store=raw_store) as url:
        ann, others = teams(url, urls)
        before = [rows(urls, machine.joined.person) for machine in others]
        again, more = teams(url, urls)
        expected = work(again, more)
        mutation = mutate(*patterns)
        replies = work(ann, others)
        removed = len(mutation.removed)
        mutate()

    assert removed >= 15
    assert [rows(urls, machine.joined.person) for machine in others] == before
    if PERSON not in patterns:
        assert replies == expected


def test_row_security_alone_hides_the_names_of_foreign_copies(
    pool: TeamDatabase, url: str, urls: DatabaseUrls, mutate: Callable[..., Mutation]
) -> None:
    """Without the filter of the team, the full copies of another team have no name, and those of a colleague have."""
    ann, others = teams(url, urls)
    team, person = UUID(ann.joined.team), UUID(ann.joined.person)
    events = [UUID(exchange(f"{machine.joined.person_name} one").id) for machine in (ann, *others)]
    mutation = mutate(TEAM)
    with pool.transaction(team, person) as connection:
        names = names_of(connection, team, events)

    assert len(mutation.removed) == 1
    assert names.keys() == set(events[:2])


def test_the_mutation_would_show_foreign_rows_without_row_security(
    urls: DatabaseUrls, raw_store: RawStore, mutate: Callable[..., Mutation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same statements as an administrator return and delete rows of others, so the test above can fail."""
    with closing(TeamDatabase(urls.app)) as pool, serving(pool, raw_store=raw_store) as url:
        ann, others = teams(url, urls)
    before = [rows(urls, machine.joined.person) for machine in others]

    def unchecked(_connection: Connection[Any]) -> None:
        pass

    monkeypatch.setattr(team_database, "_check", unchecked)
    with closing(TeamDatabase(urls.owner)) as pool, serving(pool, raw_store=raw_store) as url:
        ann.url, ann.access = url, ""
        mutate(TEAM, PERSON)
        work(ann, others)

    assert [rows(urls, machine.joined.person) for machine in others] != before
