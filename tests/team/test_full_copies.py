"""The level raw: full copies in an encrypted store, and their way back."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from click.testing import CliRunner, Result
from mcp.client.client import Client
from msgspec.structs import replace

from palaver.archiver.redaction import Redactor
from palaver.archiver.redaction.redactor import Redacted
from palaver.cli import main
from palaver.core.conversation import Kind
from palaver.core.errors import ConfigInvalid, InvalidInput
from palaver.core.memory import Memory
from palaver.core.results import TranscriptExcerpt
from palaver.observe.archive import Archive
from palaver.observe.sync.shared_folder import LocalFolder
from palaver.search.model.embedder import load
from palaver.team.client import offers
from palaver.team.client.server_connection import ServerConnection
from palaver.team.protocol import ItemKind
from palaver.team.server import raw_objects, removal
from palaver.team.server.database import TeamDatabase, administering
from palaver.team.server.raw_store import ObjectFolder, RawStore
from palaver.team.server.team_index import TeamIndex

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..object_store import s3_bucket
from . import test_commands as commands
from .laptop import Laptop
from .members import Machine, Refused, exchange, full_copy, invited, serving, session
from .postgres import DatabaseUrls
from .test_search_requests import connected, text_of, token

MIDDLE = "the middle row of the report"
THOUGHT = "perhaps the hinge is loose"
SECRET = ("ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2)[:40]


def talk(laptop: Laptop, project: str, name: str, word: str, *, folder: str = "", extra: str = "") -> None:
    """Append an exchange with a thought, and with a call whose output is longer than what leaves at the level team."""
    file = laptop.root / "projects" / project / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows_before = "row of the report " * 300
    output = f"{rows_before}{extra}{MIDDLE} of {word} {rows_before}"
    lines = [
        user(f"Why does the {word} fail?", uuid=f"{word}-asked"),
        assistant({"type": "thinking", "thinking": f"{THOUGHT}: {word}", "signature": ""}, id=f"msg-a-{word}"),
        assistant(tool("Bash", {"command": f"report {word}"}, id=f"call-{word}"), id=f"msg-b-{word}"),
        result(output, id=f"call-{word}"),
        assistant(text(f"The {word} has no address."), id=f"msg-c-{word}"),
    ]
    place = {"sessionId": name, "cwd": folder or f"/home/demo/{project}"}
    with file.open("ab") as stream:
        stream.write(jsonl([{**line, **place} for line in lines]))
    laptop.archive()


@pytest.fixture
def laptop(tmp_path: Path, url: str, urls: DatabaseUrls) -> Laptop:
    """Return a laptop of a new person, with a conversation in a project that is not shared."""
    machine = Laptop(tmp_path / "laptop")
    talk(machine, "oven", "talk-1", "door")
    machine.team("join", url, invited(urls, f"Ann {uuid4().hex[:8]}"))
    return machine


def share(laptop: Laptop) -> None:
    """Share the project with full copies, and push."""
    laptop.team("share", "oven", "--level", "raw", "--full-copies")
    laptop.push()


def objects(store: RawStore) -> set[str]:
    """Return the names of the objects in a store."""
    return set(store.folder.transport.sizes("")) - {"key"}


def own_objects(laptop: Laptop, urls: DatabaseUrls) -> set[str]:
    """Return the names of the objects to which the items of a person refer."""
    return {body for kind, body in rows(laptop, urls) if kind == ItemKind.RAW}


def rows(laptop: Laptop, urls: DatabaseUrls) -> list[tuple[str, str]]:
    person = member(laptop)[1]
    with psycopg.connect(urls.owner) as connection:
        found = connection.execute("SELECT kind, body FROM palaver.item WHERE person = %s", (person,)).fetchall()
    return [(kind, bytes(body).decode()) for kind, body in found]


def member(laptop: Laptop) -> tuple[UUID, UUID]:
    """Return the IDs of the team and of the person."""
    with Archive(laptop.home) as archive:
        membership = archive.store.team.membership()
    assert membership is not None
    return UUID(membership.team), UUID(membership.person)


def read(laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, store: RawStore | None) -> TranscriptExcerpt:
    """Read the conversation as a person of the team."""
    team, person = member(laptop)
    with psycopg.connect(urls.owner) as connection:
        row = connection.execute(
            "SELECT session::text || '/' || path FROM palaver.item WHERE person = %s AND kind = 'exchange'", (person,)
        ).fetchone()
    assert row is not None
    return TeamIndex(pool, team, person, load(), store).read(row[0])


def words(excerpt: TranscriptExcerpt) -> str:
    return "\n".join(turn.text for shown in excerpt.exchanges for turn in shown.turns)


def test_a_full_copy_shows_complete_outputs_and_thinking(
    laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore
) -> None:
    """Colleagues read all lines of an exchange of a project at the level raw, and fewer of one at the level team."""
    laptop.team("share", "oven")
    laptop.push()
    shared = read(laptop, urls, pool, raw_store)
    assert MIDDLE not in words(shared)
    assert THOUGHT not in words(shared)
    assert "full copy" not in shared.project

    share(laptop)
    full = read(laptop, urls, pool, raw_store)
    assert f"{MIDDLE} of door" in words(full)
    assert f"{THOUGHT}: door" in words(full)
    assert full.project.startswith("oven (full copy shared by Ann ")
    assert full.total_lines == shared.total_lines
    assert laptop.held(urls) == laptop.planned()
    assert MIDDLE not in words(read(laptop, urls, pool, None))


def test_only_ciphertext_is_stored(laptop: Laptop, urls: DatabaseUrls, raw_store: RawStore) -> None:
    """Neither the folder nor the database contains a text of a full copy. With the key, the store returns it."""
    share(laptop)
    [name] = own_objects(laptop, urls)
    folder = Path(raw_store.folder.place)
    assert all(MIDDLE.encode() not in file.read_bytes() for file in folder.iterdir())
    assert MIDDLE not in laptop.texts(urls)

    assert MIDDLE.encode() in (raw_store.get(name) or b"")
    assert RawStore(raw_store.folder, b"x" * 32).get(name) is None
    other = f"{uuid4().hex}{name[32:]}"
    (folder / other).write_bytes((folder / name).read_bytes())
    assert raw_store.get(other) is None
    (folder / other).unlink()


def asked(laptop: Laptop, answer: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Share at a terminal, and type an answer."""
    monkeypatch.setenv("PALAVER_HOME", str(laptop.home.root))
    monkeypatch.setattr("palaver.cli.team.is_interactive", lambda: True)
    return CliRunner().invoke(main, ["team", "share", "oven", "--level", "raw"], input=f"{answer}\n")


def test_full_copies_need_a_second_confirmation(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal, the name of the project has to be typed. Without one, an option is needed."""
    assert "add --full-copies" in laptop.team("share", "oven", "--level", "raw", code=2).stderr
    assert "add --full-copies" in laptop.team("share", "oven", "--level", "raw", "--json", code=2).stdout
    assert "confirms --level raw" in laptop.team("share", "oven", "--full-copies", code=2).stderr
    assert laptop.json("status")["projects"] == []

    refused = asked(laptop, "yes", monkeypatch)
    assert refused.exit_code == 2
    assert "Nothing was changed" in refused.stderr
    assert laptop.json("status")["projects"] == []
    done = asked(laptop, "oven", monkeypatch)
    assert done.exit_code == 0
    assert "read the conversations of oven completely" in done.stderr
    assert laptop.json("status")["projects"][0]["level"] == "raw"


def test_memories_have_no_full_copy(laptop: Laptop) -> None:
    """A memory is shared at the level team only."""
    with Archive(laptop.home) as archive:
        name = archive.memories.remember(Memory("The oven door opens to the left")).stored.id

    assert "A memory has no full copy" in laptop.team("share", name, "--level", "raw", code=2).stderr


def test_a_preview_counts_full_copies_separately(laptop: Laptop, raw_store: RawStore) -> None:
    """The previews and the push report the number and the size of full copies, and a preview sends none."""
    before = objects(raw_store)
    tried = laptop.json("share", "oven", "--level", "raw", "--dry-run")["preview"]
    assert laptop.json("share", "oven", "--dry-run")["preview"]["raw_bytes"] == 0
    laptop.team("share", "oven", "--level", "raw", "--full-copies")
    previewed = laptop.json("push", "--dry-run")
    assert "of full copies" in laptop.team("push", "--dry-run").stdout
    assert objects(raw_store) == before
    sent = laptop.json("push")

    for report in (tried, previewed, sent):
        assert report["items"]["raw"] == 1
        assert report["raw_bytes"] > 10_000 > report["bytes"] > 0
    assert "1 full copy" in laptop.team("status").stdout


def test_the_status_counts_what_the_next_push_does(laptop: Laptop) -> None:
    """After the level is lowered, only full copies are counted, and the preview names them."""
    share(laptop)
    laptop.team("share", "oven")
    status = laptop.json("status")

    assert (status["waiting"], status["leaving"]) == (0, 1)
    assert "Would be withdrawn: 1 full copy.\n" in laptop.team("push", "--dry-run").stdout
    done = laptop.push()
    assert (done.items.total(), done.withdrawn) == (0, 1)
    assert "Nothing waits." in laptop.team("status").stdout


def test_a_server_without_a_store_says_so(laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase) -> None:
    """The level is refused with what to do. A copy that is sent nevertheless is refused alone."""
    with serving(pool) as plain:
        machine = Laptop(laptop.root / "plain")
        talk(machine, "oven", "talk-1", "door")
        machine.team("join", plain, invited(urls, f"Bob {uuid4()}"))
        for option in ("--full-copies", "--dry-run"):
            failed = machine.team("share", "oven", "--level", "raw", option, code=1).stderr
            assert "stores no full copies" in failed
            assert "--raw-store" in failed
        assert machine.json("status")["projects"] == []

        own = Machine(plain, invited(urls, f"Cid {uuid4()}"))
        shared = exchange(f"a kettle {uuid4()}")
        copy = full_copy(shared, "steam")
        assert own.push([shared, copy]).refused == {copy.id: "the server stores no full copies"}
        assert own.status().own == {"exchange": 1}


@pytest.mark.parametrize("how", ["team", "metrics", "unshare", "forget", "erase", "private", "leave"])
def test_each_way_back_deletes_the_objects(laptop: Laptop, urls: DatabaseUrls, raw_store: RawStore, how: str) -> None:
    """A lower level, a deletion, a private project and leaving leave no object. At the level team, the rest stays."""
    before = objects(raw_store)
    talk(laptop, "oven", "talk-1", "lamp")
    share(laptop)
    assert len(objects(raw_store) - before) == 2
    match how:
        case "team" | "metrics":
            laptop.team("share", "oven", "--level", how)
        case "unshare":
            laptop.team("unshare", "oven")
        case "forget" | "erase":
            laptop.forget(targets=("talk-1",), erase=how == "erase")
        case "private":
            laptop.home.config.write_text('private_projects = ["oven"]\n')
        case _:
            laptop.team("leave", "--withdraw")
    if how != "leave":
        laptop.push()

    assert objects(raw_store) == before
    kinds = [kind for kind, _ in rows(laptop, urls)]
    assert kinds.count("exchange") == (2 if how == "team" else 0)
    with psycopg.connect(urls.owner) as connection:
        listed = connection.execute("SELECT FROM palaver.raw_object WHERE person = %s", (member(laptop)[1],))
        assert listed.fetchall() == []


def test_a_forgotten_exchange_leaves_the_copies_of_others(
    laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore
) -> None:
    """Only the forgotten exchange is withdrawn, and undo shares it again."""
    talk(laptop, "oven", "talk-1", "lamp")
    share(laptop)
    number = laptop.forget(mentions="lamp fail")
    laptop.push()
    assert len(own_objects(laptop, urls)) == 1
    assert "lamp" not in words(read(laptop, urls, pool, raw_store))

    laptop.run("forget", "--undo", str(number))
    laptop.archive()
    laptop.push()
    assert f"{MIDDLE} of lamp" in words(read(laptop, urls, pool, raw_store))


def test_an_exchange_that_is_forgotten_during_a_push_has_no_copy(laptop: Laptop) -> None:
    """The push has read the session, but not yet the full copy. It withdraws the copy instead of failing."""
    share(laptop)
    with Archive(laptop.home) as archive:
        membership = archive.store.team.joined()
        assert membership is not None
        sharing = offers.Offers(archive, membership)
        units = archive.store.team.units()
        [copy] = [
            row for unit in units for row in archive.store.team.of_unit(unit).values() if row.kind == ItemKind.RAW
        ]
        sharing.of_unit(copy.unit)
        laptop.forget(targets=("talk-1",))

        assert sharing.item(copy) is None


def test_a_copy_that_cannot_be_sent_is_named(
    laptop: Laptop, urls: DatabaseUrls, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that does not fit into a batch, or whose lines are gone, stays here. An earlier one is withdrawn."""
    before = objects(raw_store)
    share(laptop)
    monkeypatch.setattr(offers, "BYTES_MAX", 20_000)
    talk(laptop, "oven", "talk-1", "lamp", extra="x" * 10_000)
    tried = laptop.json("push", "--dry-run")["refused"]
    sent = laptop.json("push")["refused"]
    assert tried == sent
    assert [(item["id"][:15], item["reason"]) for item in sent] == [("full copy of ex", "larger than 0 MB")]
    assert len(own_objects(laptop, urls)) == 1
    assert "Left out: 1 item (larger than 0 MB)" in laptop.team("status").stdout

    monkeypatch.setattr(offers, "BYTES_MAX", 10_000)
    with Archive(laptop.home) as archive, archive.store.transaction():
        membership = archive.store.team.joined()
        assert membership is not None
        archive.store.team.save(replace(membership, rules=""))
    assert len(laptop.json("push")["refused"]) == 2
    assert objects(raw_store) == before
    assert laptop.json("status")["own"]["exchange"] == 2


def test_a_lost_archived_copy_is_named(laptop: Laptop) -> None:
    """Without its archived lines, an exchange is shared without a full copy."""
    for file in (laptop.home.root / "archive").rglob("*.jsonl*"):
        file.unlink()
    laptop.team("share", "oven", "--level", "raw", "--full-copies")
    report = laptop.json("push")

    assert [item["reason"] for item in report["refused"]] == ["its archived lines cannot be read"]
    assert report["items"]["exchange"] == 1


def test_a_copy_of_a_folder_at_the_level_team_stays(laptop: Laptop, urls: DatabaseUrls) -> None:
    """If the agent worked in the folder of a project at the level team, no full copy of the exchange leaves."""
    talk(laptop, "lamp", "talk-2", "bulb")
    laptop.team("share", "lamp")
    talk(laptop, "oven", "talk-1", "shade", folder="/home/demo/lamp")
    share(laptop)

    kinds = [kind for kind, _ in rows(laptop, urls)]
    assert (kinds.count("exchange"), kinds.count("raw")) == (3, 1)
    laptop.team("share", "lamp", "--level", "raw", "--full-copies")
    laptop.push()
    assert [kind for kind, _ in rows(laptop, urls)].count("raw") == 3


def test_secrets_in_complete_outputs_are_removed(
    laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret beyond the first characters of an output is removed too, by the rules at the time of the push."""

    def unchanged(_self: Redactor, text: str, **_options: object) -> Redacted:
        return Redacted(text)

    with monkeypatch.context() as earlier:
        earlier.setattr(Redactor, "redact", unchanged)
        talk(laptop, "oven", "talk-1", "lamp", extra=f" {SECRET} /home/demo/oven/x ")
    share(laptop)

    shown = words(read(laptop, urls, pool, raw_store))
    assert f"{MIDDLE} of lamp" in shown
    assert SECRET not in shown
    assert "github-pat" in shown


def test_private_text_stays(laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore) -> None:
    """Text between `<private>` and `</private>` is only in the archived lines, and in no full copy."""
    talk(laptop, "oven", "talk-1", "lamp", extra=" <private>the combination is 7</private> ")
    talk(laptop, "oven", "talk-1", "shelf <private>and the combination is 7</private>")
    share(laptop)

    shown = words(read(laptop, urls, pool, raw_store))
    assert f"{MIDDLE} of lamp" in shown
    assert f"{THOUGHT}: shelf" in shown
    assert "combination" not in shown


def test_the_server_checks_full_copies(url: str, urls: DatabaseUrls, raw_store: RawStore) -> None:
    """A copy with a secret refuses the batch, and nothing is written to the store."""
    machine, before = Machine(url, invited(urls, f"Ann {uuid4()}")), objects(raw_store)
    shared = exchange(f"a kettle {uuid4()}")
    with pytest.raises(Refused) as refused:
        machine.push([shared, full_copy(shared, f"the key is {SECRET}")])

    assert "contains a secret" in refused.value.reason
    assert objects(raw_store) == before


def test_a_repeated_or_refused_batch_leaves_no_object(url: str, urls: DatabaseUrls, raw_store: RawStore) -> None:
    """A known batch, one out of step, and a copy that was withdrawn elsewhere add nothing to the store."""
    ann = f"Ann {uuid4()}"
    machine, before = Machine(url, invited(urls, ann)), objects(raw_store)
    shared = exchange(f"a kettle {uuid4()}")
    copy = full_copy(shared, "steam")
    batch = machine.batch([shared, copy])
    machine.send(batch)
    assert machine.send(batch).known
    with pytest.raises(Refused):
        machine.send(replace(batch, start=1, end=4))
    assert len(objects(raw_store) - before) == 1
    machine.cursor = 2
    machine.push(withdrawn=[copy.id])
    desktop = Machine(url, invited(urls, ann), "desktop")
    assert desktop.push([copy]).refused == {copy.id: "withdrawn on another machine"}
    assert objects(raw_store) == before


def test_a_replaced_copy_leaves_one_object(url: str, urls: DatabaseUrls, raw_store: RawStore) -> None:
    """The object of an earlier state is deleted after the new one is stored."""
    machine, before = Machine(url, invited(urls, f"Ann {uuid4()}")), objects(raw_store)
    shared = exchange(f"a kettle {uuid4()}")
    for output in ("steam", "more steam"):
        machine.push([shared, full_copy(shared, output)])

    [name] = objects(raw_store) - before
    assert b"more steam" in (raw_store.get(name) or b"")


def test_nobody_gives_a_copy_to_the_exchange_of_another(
    url: str, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore
) -> None:
    """A copy that another person stored before the exchange arrived is not shown as its full copy."""
    ann, bob = (Machine(url, invited(urls, f"{name} {uuid4()}")) for name in ("Ann", "Bob"))
    talked = session(f"talk {uuid4()}")
    shared = replace(exchange(f"a kettle {uuid4()}"), session=talked.id)
    forged = replace(full_copy(shared, "forged"), session="")
    assert bob.push([forged]).refused == {}
    ann.push([talked, shared])
    assert bob.push([full_copy(shared, "forged")]).refused.keys() == {forged.id}

    index = TeamIndex(pool, UUID(ann.joined.team), UUID(ann.joined.person), load(), raw_store)
    assert "forged" not in words(index.read(f"{talked.id}/a.jsonl"))


def test_a_page_and_a_tool_show_the_full_copy(laptop: Laptop, urls: DatabaseUrls, url: str) -> None:
    """A browser and an agent read the complete output, and see who shares the full copy."""
    talk(laptop, "oven", "talk-1", "thermometer")
    share(laptop)
    label = f"oven (full copy shared by {laptop.json('status')['person']})"
    access = token(urls, Machine(url, invited(urls, f"Bob {uuid4()}")), f"{url}/mcp")
    with httpx2.Client(base_url=url, trust_env=False, headers={"sec-fetch-site": "same-origin"}) as browser:
        browser.post("/enter", data={"token": access}, headers={"origin": url})
        found = browser.get("/", params={"q": "thermometer fail"}).text
        lines = found.partition('href="/lines/')[2].partition('"')[0].partition("?")[0]
        page = browser.get(f"/lines/{lines}").text
    assert f"{MIDDLE} of thermometer" in page
    assert label in page

    async def scenario(client: Client) -> None:
        reply = await client.call_tool("read", {"path": lines, "startLine": 9, "endLine": 9})
        assert f"{MIDDLE} of thermometer" in text_of(reply)
        assert label in text_of(reply)

    connected(url, access, "legacy", scenario)


def test_a_tool_shortens_a_very_long_output(
    laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply of a tool has the beginning and the end of a text that is too long for it. A page has all of it."""
    monkeypatch.setattr(TeamIndex.read, "__kwdefaults__", {"longest": 3_000})
    share(laptop)
    excerpt = read(laptop, urls, pool, raw_store)
    [output] = [turn.text for turn in excerpt.exchanges[0].turns if turn.kind is Kind.RESULT]

    assert 3_000 < len(output) < 3_100
    assert MIDDLE not in output
    assert "characters left out" in output
    team, person = member(laptop)
    assert MIDDLE in words(TeamIndex(pool, team, person, load(), raw_store).read(excerpt.path, longest=None))


def test_an_unreachable_store_refuses_pushes_and_shows_what_the_database_has(
    laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored without its copy. Readers get the shared lines, and withdrawn objects are deleted later.

    A reader waits for the store only once.
    """

    def broken(*_arguments: object) -> None:
        raise OSError("disk full")

    before, asked = objects(raw_store), list[object]()

    def unreadable(*arguments: object) -> None:
        asked.append(arguments)
        raise OSError("no answer")

    talk(laptop, "oven", "talk-1", "lamp")
    with monkeypatch.context() as full:
        full.setattr(LocalFolder, "write", broken)
        laptop.team("share", "oven", "--level", "raw", "--full-copies")
        assert "store of full copies does not answer" in laptop.team("push", code=1).stderr
    laptop.push()
    assert len(objects(raw_store) - before) == 2
    with monkeypatch.context() as silent:
        silent.setattr(LocalFolder, "read", unreadable)
        shown = words(read(laptop, urls, pool, raw_store))
    assert "The door has no address" in shown
    assert "The lamp has no address" in shown
    assert len(asked) == 1
    with monkeypatch.context() as stuck:
        stuck.setattr(LocalFolder, "delete", broken)
        laptop.team("unshare", "oven")
    assert laptop.held(urls) == {}
    assert len(objects(raw_store) - before) == 2
    with pytest.raises(InvalidInput, match="2 full copies are to be deleted"):
        raw_objects.clean(urls.owner, None)
    laptop.team("share", "oven")
    laptop.push()
    assert objects(raw_store) == before


def test_clean_deletes_withdrawn_objects_and_those_without_an_item(
    laptop: Laptop, urls: DatabaseUrls, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`palaver team clean` deletes what a killed server left, but neither live objects, new ones nor foreign files."""
    share(laptop)
    live, team = objects(raw_store), member(laptop)[0]
    with monkeypatch.context() as earlier:
        earlier.setattr("palaver.team.server.raw_store.time.time", lambda: time.time_ns() / 1e9 - 4_000)
        [orphan] = raw_store.put(team, [b"orphan"])
        [foreign] = raw_store.put(uuid4(), [b"of another database"])
    [new] = raw_store.put(team, [b"being written"])
    (Path(raw_store.folder.place) / f"{orphan}.new").write_bytes(b"half")

    with pytest.raises(InvalidInput, match="No full copies in"):
        raw_objects.clean(urls.owner, ObjectFolder(str(tmp_path / "mistyped")))
    assert raw_objects.clean(urls.owner, ObjectFolder(raw_store.folder.place)) == (2, 1)
    assert objects(raw_store) == live | {new, foreign}
    raw_store.folder.delete([new, foreign])


def test_the_copies_of_a_removed_person_are_cleaned(url: str, urls: DatabaseUrls, raw_store: RawStore) -> None:
    """After `palaver team remove`, nobody reads the copies of the person, and `clean` deletes only their objects."""
    before = objects(raw_store)
    machines = [Machine(url, invited(urls, f"{name} {uuid4()}")) for name in ("Ann", "Bob")]
    for machine in machines:
        shared = exchange(f"a kettle {uuid4()}")
        machine.push([shared, full_copy(shared, machine.joined.person_name)])
    joined = machines[0].joined
    with administering(urls.owner) as connection:
        removal.remove(connection, UUID(joined.team), joined.person_name)
    assert raw_objects.clean(urls.owner, raw_store.folder).deleted == 1

    [left] = objects(raw_store) - before
    assert machines[1].joined.person_name.encode() in (raw_store.get(left) or b"")


def test_the_key_belongs_to_the_store(tmp_path: Path) -> None:
    """A new store gets a key that only its owner can read. Another key, no key and other files are refused."""
    place, key = str(tmp_path / "store"), tmp_path / "keys" / "raw.key"
    first, is_new = RawStore.opened(place, key)
    assert is_new
    assert key.stat().st_mode & 0o777 == 0o600
    [name] = first.put(uuid4(), [b"steam"])
    again, is_new = RawStore.opened(place, key)
    assert not is_new
    assert again.get(name) == b"steam"

    other = tmp_path / "other.key"
    other.write_text(f"{'ab' * 32}\n")
    other.chmod(0o600)
    with pytest.raises(ConfigInvalid, match="is not the key of"):
        RawStore.opened(place, other)
    other.write_text("no key")
    with pytest.raises(ConfigInvalid, match="contains no key"):
        RawStore.opened(place, other)
    key.rename(tmp_path / "backup.key")
    with pytest.raises(ConfigInvalid, match="is missing, and the full copies") as missing:
        RawStore.opened(place, key)
    assert "backup" in missing.value.hint
    assert not key.exists()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigInvalid, match="cannot be used"):
        RawStore.opened(str(blocked / "store"), key)


def test_a_mistyped_store_is_no_new_one(tmp_path: Path) -> None:
    """The key of a store exists, and the store does not: nothing is stored at the wrong place."""
    key = tmp_path / "raw.key"
    RawStore.opened(str(tmp_path / "store"), key)

    with pytest.raises(ConfigInvalid, match="is the key of a store") as refused:
        RawStore.opened(str(tmp_path / "sotre"), key)
    assert "Check --raw-store" in refused.value.hint


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_key_that_other_users_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    """The message has the command that protects the file. After it, the store opens."""
    place, key = str(tmp_path / "store"), tmp_path / "raw.key"
    RawStore.opened(place, key)
    key.chmod(mode)

    with pytest.raises(ConfigInvalid, match="Other users can use the key") as refused:
        RawStore.opened(place, key)
    assert refused.value.hint == f"Run: chmod 600 {key}"
    key.chmod(0o600)
    assert RawStore.opened(place, key)[1] is False


def test_the_administrator_serves_and_cleans_a_store(urls: DatabaseUrls, tmp_path: Path) -> None:
    """The first start creates the key, and another key is refused. `clean` needs the store if copies were withdrawn."""
    place, key, owner = tmp_path / "store", tmp_path / "raw.key", {"PALAVER_TEAM_DATABASE": urls.owner}
    options = ("--database", urls.app, "--raw-store", place)
    assert "Give both --raw-store and --raw-key" in commands.run("serve", *options, status=2).stderr
    with commands.serving(*options, "--raw-key", key) as served:
        assert key.exists()
        with ServerConnection(served.url) as connection:
            assert connection.hello().raw
        machine = Machine(served.url, invited(urls, f"Ann {uuid4()}"))
        shared = exchange(f"a kettle {uuid4()}")
        copy = full_copy(shared, "steam")
        assert machine.push([shared, copy]).refused == {}
    assert sum(1 for _ in place.iterdir()) == 2
    with commands.serving("--database", urls.app) as served:
        assert "nobody can read or send them until you start it with --raw-store" in served.messages
        machine.url, machine.access = served.url, ""
        assert machine.status().own == {"exchange": 1}
        assert machine.push(withdrawn=[copy.id]).deleted == 1
    recent = RawStore.opened(str(place), key)[0].put(UUID(machine.joined.team), [b"being written"])
    assert "1 full copy is to be deleted" in commands.run("clean", status=2, env=owner).stderr
    assert commands.result("clean", "--raw-store", place, env=owner)["full_copies"] == 1
    assert sorted(file.name for file in place.iterdir()) == [*recent, "key"]
    left = commands.run("clean", "--raw-store", place, env=owner).stdout
    assert "1 full copy without an item is less than an hour old" in left
    assert f"run this again in an hour: palaver team clean --raw-store {place}\n" in left
    key.write_text("ab" * 32)
    assert "is not the key of" in commands.run("serve", *options, "--raw-key", key, status=1).stderr


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of an empty bucket on a local S3 server."""
    with s3_bucket(monkeypatch, "copies"):
        yield "s3://copies/team"


def test_a_bucket_stores_full_copies(urls: DatabaseUrls, pool: TeamDatabase, tmp_path: Path, bucket: str) -> None:
    """Copies in an object store are written, read, deleted and cleaned like those in a folder."""
    store, _ = RawStore.opened(bucket, tmp_path / "raw.key")
    with serving(pool, raw_store=store) as url:
        machine = Laptop(tmp_path / "other")
        talk(machine, "oven", "talk-1", "door")
        talk(machine, "oven", "talk-1", "lamp")
        machine.team("join", url, invited(urls, f"Bob {uuid4()}"))
        share(machine)
        assert objects(store) == own_objects(machine, urls) != set()
        assert f"{MIDDLE} of lamp" in words(read(machine, urls, pool, store))
        assert RawStore.opened(bucket, tmp_path / "raw.key")[1] is False
        assert raw_objects.clean(urls.owner, ObjectFolder(bucket)) == (0, 0)
        machine.team("unshare", "oven")
        assert objects(store) == set()
    with pytest.raises(ConfigInvalid, match="missing-bucket"):
        RawStore.opened("s3://missing-bucket/team", tmp_path / "raw.key")
