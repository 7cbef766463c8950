"""Removal of a person by the administrator: with everything that the person shared, and with nothing else."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from palaver.core.errors import TeamDatabaseUnusable
from palaver.team.protocol import Scope, TeamHits, TeamQuery
from palaver.team.server import identity, raw_objects, removal
from palaver.team.server.database import administering
from palaver.team.server.erasure import clean
from palaver.team.server.raw_store import RawStore

from .members import Machine, Refused, exchange, full_copy, invited, memory, request, usage
from .postgres import DatabaseUrls
from .test_filters_removed import PERSON, TEAM, Mutation, mutate  # noqa: F401 # pyright: ignore[reportUnusedImport]

ROOT = Path(__file__).parents[2]
KILLS = 6


def members(url: str, urls: DatabaseUrls) -> tuple[Machine, Machine, Machine]:
    """Return machines of two people of a new team, and of a person of another team, who share the same items."""
    suffix = uuid4().hex
    names = (("ann", "red"), ("bob", "red"), ("cid", "blue"))
    machines = [Machine(url, invited(urls, f"{name} {suffix}", f"{team} {suffix}")) for name, team in names]
    for machine in machines:
        name = machine.joined.person_name
        machine.push([*items_of(name), usage("2026-01-01", name)])
    ann, bob, cid = machines
    return ann, bob, cid


def items_of(name: str) -> list[Any]:
    """Return what a person shares."""
    return [exchange(f"the kettle of {name}"), exchange(f"a lid of {name}"), memory(f"{name} prefers tea")]


def removed(urls: DatabaseUrls, machine: Machine) -> removal.Removal:
    """Remove the person with a machine."""
    with administering(urls.owner) as connection:
        return removal.remove(connection, UUID(machine.joined.team), machine.joined.person_name)


def rows(urls: DatabaseUrls, machine: Machine) -> dict[str, int]:
    """Return the numbers of rows of the person with a machine, by table."""
    with psycopg.connect(urls.owner) as connection:
        return {
            table: connection.execute(
                f"SELECT count(*) FROM palaver.{table} WHERE person = %s".encode(), (machine.joined.person,)
            ).fetchall()[0][0]
            for table in ("item", "entry", "embedding", "token", "invitation", "gone")
        }


def test_a_removed_person_has_no_access_and_shares_nothing(url: str, urls: DatabaseUrls) -> None:
    """Machine, token and join code end, and no item, text or vector of the person is left. Others keep theirs."""
    ann, bob, cid = members(url, urls)
    with administering(urls.owner) as connection:
        team, person = UUID(ann.joined.team), UUID(ann.joined.person)
        access = identity.issue_token(connection, team, person, [Scope.READ], f"{url}/mcp", 1)
        code = identity.invite(connection, team, ann.joined.person_name)
    before = rows(urls, bob), rows(urls, cid)

    assert removed(urls, ann) == (1, 4, 0)
    assert rows(urls, ann) == {"item": 0, "entry": 0, "embedding": 0, "token": 0, "invitation": 0, "gone": 4}
    assert (rows(urls, bob), rows(urls, cid)) == before
    for use in (
        ann.status,
        ann.new_token,
        lambda: request(url, "search", TeamQuery("kettle"), TeamHits, access),
        lambda: Machine(url, code),
    ):
        with pytest.raises(Refused) as refused:
            use()
        assert refused.value.status in {401, 403}
    hits = bob.post("search", TeamQuery("the kettle of"), TeamHits).hits
    assert {hit.person for hit in hits} == {bob.joined.person_name}


def test_counts_of_terms_are_those_of_the_others(url: str, urls: DatabaseUrls) -> None:
    """The statistics of the team do not contain words of a removed person."""
    ann, bob, _ = members(url, urls)

    def terms() -> dict[str, int]:
        with psycopg.connect(urls.owner) as connection:
            rows = connection.execute("SELECT term, entries FROM palaver.term WHERE team = %s", (ann.joined.team,))
            return dict(rows.fetchall())

    removed(urls, ann)
    left = terms()
    removed(urls, bob)

    assert left["kettl"] == 1
    assert not any(terms().values())


def test_no_old_copy_of_a_removed_person_returns(url: str, urls: DatabaseUrls) -> None:
    """After the person joined again, the same items are refused, also from the same machine. New ones are accepted."""
    ann, _, _ = members(url, urls)
    name = ann.joined.person_name
    removed(urls, ann)
    again = Machine(url, invited(urls, name, ann.joined.team_name))
    pushed = again.push([*items_of(name), exchange("a new saucer")])

    assert again.joined.person == ann.joined.person
    assert {*pushed.refused} == {item.id for item in items_of(name)}
    assert again.status().own == {"exchange": 1}
    assert "4 deleted: erased from search now, from disk by" in again.status().erasures


def test_a_removal_is_erased_from_disk_by_the_next_cleaning(url: str, urls: DatabaseUrls) -> None:
    """The deletion is recorded as that of a member, so `palaver team clean` rewrites the tables."""
    ann, _, _ = members(url, urls)
    clean(urls.owner)
    removed(urls, ann)

    assert any(table.startswith("palaver.entry_") for table in clean(urls.owner))


def test_full_copies_of_a_removed_person_are_deleted_by_the_next_cleaning(
    url: str, urls: DatabaseUrls, raw_store: RawStore
) -> None:
    """The objects of the person leave their store, and those of others stay."""
    ann, bob, _ = members(url, urls)
    raw_objects.clean(urls.owner, raw_store.folder)
    for machine in (ann, bob):
        shared = exchange(f"the kettle of {machine.joined.person_name}")
        machine.push([shared, full_copy(shared, "steam")])
    assert removed(urls, ann).full_copies == 1

    assert raw_objects.clean(urls.owner, raw_store.folder).deleted == 1
    assert bob.status().own["raw"] == 1


def test_a_push_that_has_begun_is_withdrawn_too(url: str, urls: DatabaseUrls) -> None:
    """The removal waits for the machine's lock of a push, and then finds what the push stored."""
    ann, _, _ = members(url, urls)
    joined = ann.joined
    late = exchange("a late spoon")
    with ThreadPoolExecutor(1) as thread, psycopg.connect(urls.owner) as pushing:
        pushing.execute("SELECT FROM palaver.device WHERE id = %s FOR UPDATE", (joined.device,))
        work = thread.submit(removed, urls, ann)
        while not pushing.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall():
            pass
        pushing.execute(
            """INSERT INTO palaver.item (team, id, person, device, visibility, kind, project_id, project, path, body,
                hash, seq) VALUES (%s, %s, %s, %s, 2, 'memory', '', '', '', '', '', 9)""",
            (joined.team, late.id, joined.person, joined.device),
        )
        pushing.commit()
        assert work.result(30) == (1, 5, 0)

    assert rows(urls, ann)["item"] == 0


def test_a_killed_removal_changes_all_or_nothing(url: str, urls: DatabaseUrls) -> None:
    """Killed at any statement, the removal changed nothing, and the next one completes it."""
    ann, _, _ = members(url, urls)
    before = rows(urls, ann)

    def run(step: int) -> subprocess.CompletedProcess[str]:
        arguments = (urls.owner, ann.joined.team_name, ann.joined.person_name, str(step))
        command = [sys.executable, "-m", "tests.team.killed_removal", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    for number in range(1, KILLS + 1):
        assert run(number * 7).returncode < 0
        assert rows(urls, ann) == before
        ann.status()
    assert int(run(0).stdout) > KILLS * 7
    assert rows(urls, ann)["item"] == 0


def test_row_security_alone_keeps_the_items_of_others(
    url: str,
    urls: DatabaseUrls,
    mutate: Callable[..., Mutation],  # noqa: F811
) -> None:
    """With each filter by team and person removed, the withdrawal deletes only items of the removed person."""
    ann, bob, cid = members(url, urls)
    before = rows(urls, bob), rows(urls, cid)
    with administering(urls.owner) as connection:
        mutation = mutate(TEAM, PERSON)
        removal.withdraw(connection, UUID(ann.joined.team), UUID(ann.joined.person))
    count = len(mutation.removed)

    assert count >= 5
    assert (rows(urls, bob), rows(urls, cid)) == before
    assert rows(urls, ann)["item"] == 0


def test_an_administrator_needs_the_right_to_act_as_the_application(url: str, urls: DatabaseUrls) -> None:
    """Without it nothing changes, and the message names what is needed."""
    ann, _, _ = members(url, urls)
    name = f"limited_{uuid4().hex}"
    with psycopg.connect(urls.owner, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE palaver_owner".encode())
        connection.execute(f"GRANT SELECT ON palaver.schema_version TO {name}".encode())
    limited = urls.owner.replace("//postgres:", f"//{name}:", 1)
    with pytest.raises(TeamDatabaseUnusable, match="may not act as palaver_app"), administering(limited) as connection:
        removal.remove(connection, UUID(ann.joined.team), ann.joined.person_name)
    with psycopg.connect(urls.owner, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())

    assert ann.status().own == {"exchange": 2, "memory": 1, "usage": 1}
