"""Commands of a member: join, share, push, unshare, status and leave, with a running server."""

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace

from palaver.archiver.redaction import FoundSecret, Redactor
from palaver.archiver.redaction.redactor import Redacted
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.team.server import removal
from palaver.team.server.database import TeamDatabase, administering
from palaver.team.server.identity import find_team, revoke

from .laptop import CLOCK, LIBRARY, Laptop, address_of, set_address
from .members import invited, serving
from .postgres import DatabaseUrls


@pytest.fixture
def laptop(tmp_path: Path, built: Home) -> Laptop:
    """Return a laptop with the sample archive."""
    return Laptop(tmp_path / "laptop", built)


@pytest.fixture
def member(laptop: Laptop, url: str, urls: DatabaseUrls) -> Laptop:
    """Return a laptop of a new person of the team."""
    return joined(laptop, url, urls)


def joined(laptop: Laptop, url: str, urls: DatabaseUrls, person: str = "") -> Laptop:
    laptop.team("join", url, invited(urls, person or f"Ann {uuid4()}"))
    return laptop


def test_nothing_leaves_before_a_project_is_shared(member: Laptop, urls: DatabaseUrls) -> None:
    """A push after joining sends nothing, and says so."""
    assert "Nothing new to send" in member.team("push").stdout
    assert member.held(urls) == {}


def test_a_shared_project_is_pushed_and_the_other_stays(member: Laptop, urls: DatabaseUrls) -> None:
    """The server gets what the plan lets out of one project, and nothing of the other."""
    shown = member.team("share", CLOCK).stdout
    assert f"Shared from the next push on: {CLOCK} (level team, " in shown
    assert "Pushed to the team acme" in member.team("push").stdout

    assert member.held(urls) == member.planned() != {}
    bodies = member.texts(urls)
    assert CLOCK in bodies
    assert "seed packet" not in bodies
    assert "/home/demo" not in bodies


def test_a_preview_sends_and_shares_nothing(member: Laptop, urls: DatabaseUrls) -> None:
    """`share --dry-run` and `push --dry-run` print the same numbers that the push reports."""
    tried = member.json("share", CLOCK, "--dry-run")["preview"]
    assert member.json("status")["projects"] == []
    member.team("share", CLOCK)
    previewed = member.json("push", "--dry-run")
    assert member.held(urls) == {}
    sent = member.json("push")

    numbers = ("items", "bytes", "secrets", "home_paths", "withdrawn")
    assert [tried[name] for name in numbers] == [previewed[name] for name in numbers]
    assert [tried[name] for name in numbers] == [sent[name] for name in numbers]
    assert previewed["stays"]["private project"] > 0


def test_secrets_are_removed_again_by_the_current_rules(
    member: Laptop, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that earlier rules did not know is archived, but does not leave. The ledger names its kind."""
    secret = ("ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2)[:40]

    def unchanged(_self: Redactor, text: str, **_options: object) -> Redacted:
        return Redacted(text)

    with monkeypatch.context() as earlier:
        earlier.setattr(Redactor, "redact", unchanged)
        member.write("oven", "talk-1", f"door {secret}")
    with Archive(member.home) as archive:
        assert any(secret in prompt.text for prompt in archive.store.exchanges.prompts())
    member.team("share", "oven")

    assert member.json("push")["secrets"] == {"github-pat": 1}
    assert secret not in member.texts(urls)
    assert "github-pat" in member.texts(urls)


def test_metrics_share_numbers_only(member: Laptop, urls: DatabaseUrls) -> None:
    """At the level `metrics`, only the use by day leaves. Raised to `team`, conversations follow, and lowered, go."""
    member.team("share", LIBRARY, "--level", "metrics")
    assert member.json("push")["items"].keys() == {"usage"}
    member.team("share", LIBRARY)
    assert "exchange" in member.json("push")["items"]
    member.team("share", LIBRARY, "--level", "metrics")
    assert member.json("push")["withdrawn"] > 0

    assert member.json("status")["own"].keys() == {"usage"}
    assert member.held(urls) == member.planned()


def test_unsharing_withdraws_at_once(member: Laptop, urls: DatabaseUrls) -> None:
    """`unshare` needs no push, and the status promises dates of the erasure."""
    member.team("share", CLOCK)
    member.push()

    done = member.team("unshare", CLOCK)
    assert f"{CLOCK} is private now." in done.stdout
    assert "Withdrawn from acme: " in done.stderr
    assert "from disk by" in done.stderr
    assert member.held(urls) == {}
    assert "from backups by" in member.team("status").stdout


def test_a_project_whose_folder_is_gone_is_withdrawn(member: Laptop, urls: DatabaseUrls, tmp_path: Path) -> None:
    """A project in a deleted folder keeps its identity, so that it can be unshared by its name."""
    folder = tmp_path / "oven"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/kitchen/oven.git\n')
    member.write("oven", "talk", "door", folder=folder)
    member.team("share", str(folder))
    member.push()
    before = member.held(urls)
    assert before

    shutil.rmtree(folder)
    member.push()
    assert member.held(urls) == before
    member.team("unshare", "oven")
    assert member.held(urls) == {}


def test_a_chosen_memory_is_shared_and_taken_back(member: Laptop, urls: DatabaseUrls) -> None:
    """A memory leaves only if the user chooses it."""
    with Archive(member.home).memories as memories:
        remembered = memories.remember(Memory("The tide table is in feet", "fact", namespace=f"project:{CLOCK}"))
    name = remembered.stored.id
    member.team("share", CLOCK)
    member.push()
    assert "tide table is in feet" not in member.texts(urls)
    member.team("share", name)
    member.push()
    assert "tide table is in feet" in member.texts(urls)
    member.team("unshare", name)

    assert "tide table is in feet" not in member.texts(urls)
    assert "A memory has no metrics" in member.team("share", name, "--level", "metrics", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (("join", "http://team.example.com", "CODE"), "is not encrypted", "Use https://"),
        (("join", "ftp://127.0.0.1", "CODE"), "Invalid URL", "https://palaver.example.com"),
        (("push",), "belongs to no team", "palaver team join URL CODE"),
        (("share", CLOCK), "belongs to no team", "palaver team join URL CODE"),
        (("unshare", CLOCK), "belongs to no team", "palaver team join URL CODE"),
        (("leave",), "belongs to no team", "palaver team join URL CODE"),
    ],
)
def test_a_wrong_call_names_the_next_step(laptop: Laptop, arguments: tuple[str, ...], problem: str, hint: str) -> None:
    """Without a team, or with an address that would send in clear, nothing happens."""
    failed = laptop.team(*arguments, code=2).stderr
    assert problem in failed
    assert hint in failed


def test_a_code_works_once(laptop: Laptop, tmp_path: Path, built: Home, url: str, urls: DatabaseUrls) -> None:
    """A used code is refused, and a server that is not there is not joined."""
    code = invited(urls, f"Ann {uuid4()}")
    laptop.team("join", url, code)
    second = Laptop(tmp_path / "second", built)

    assert "unknown, used or expired" in second.team("join", url, code, code=1).stderr
    assert "cannot be reached" in second.team("join", "http://127.0.0.1:9", code, code=1).stderr
    assert second.json("status") == {"team": None}


def test_unknown_and_private_projects_are_refused(member: Laptop) -> None:
    """A typo is no project, and the setting `private_projects` wins over a level."""
    assert f"Did you mean {CLOCK}" in member.team("share", "tide-clok", code=2).stderr
    member.team("share", CLOCK)
    member.home.config.write_text(f'private_projects = ["{CLOCK}"]\n')

    assert "is in private_projects" in member.team("share", CLOCK, code=2).stderr
    assert member.json("push", "--dry-run")["items"] == {}


def test_private_projects_withdraw_what_was_shared(member: Laptop, urls: DatabaseUrls) -> None:
    """A project that becomes private by the settings is withdrawn by the next push."""
    member.team("share", CLOCK)
    member.push()
    member.home.config.write_text('private_projects = ["/home/demo/tide-clock"]\n')
    member.push()

    assert member.held(urls) == {}


def test_an_unreached_server_is_reported(member: Laptop, urls: DatabaseUrls) -> None:
    """The status answers without the server, and a deletion is withdrawn by the next push."""
    member.team("share", CLOCK)
    member.push()
    before = address_of(member)
    set_address(member, "http://127.0.0.1:9")

    assert "cannot be reached" in member.team("push", code=1).stderr
    done = member.team("unshare", CLOCK)
    assert "Not yet withdrawn from the team" in done.stderr
    assert "palaver team push" in done.stderr
    status = member.json("status")
    assert status["leaving"] > 0
    assert "cannot be reached" in status["problem"]
    assert "cannot be reached: no server answers at this address. Check" in member.team("status").stdout

    set_address(member, before)
    member.team("push")
    assert member.held(urls) == {}


def test_only_the_joined_address_is_used(member: Laptop, urls: DatabaseUrls) -> None:
    """A machine that belongs to a team joins no other, and nothing follows a redirect."""
    code = invited(urls, f"Bob {uuid4()}", "other team")
    assert "belongs to the team acme" in member.team("join", "http://127.0.0.1:9", code, code=2).stderr


def test_a_revoked_machine_is_refused(member: Laptop, urls: DatabaseUrls) -> None:
    """After the administrator revoked it, a machine is told to join again, and the new code restores the same set."""
    member.team("share", CLOCK)
    member.push()
    before, person = member.conversations(urls), member.json("status")["person"]
    with administering(urls.owner) as connection:
        revoke(connection, find_team(connection, "acme"), person)

    failed = member.team("push", code=1).stderr
    assert "join" in failed
    assert "revoked" in failed
    assert "shares what it shared before" in member.team("join", address_of(member), invited(urls, person)).stdout
    member.push()
    assert member.conversations(urls) == before
    assert member.held(urls) == member.planned()


def test_another_person_inherits_no_level(member: Laptop, urls: DatabaseUrls) -> None:
    """If the new code is that of another person, nothing is shared until this person shares it."""
    member.team("share", CLOCK)
    member.push()
    assert "Nothing is shared yet" in member.team("join", address_of(member), invited(urls, "Eve", "x")).stdout
    member.push()

    assert member.held(urls) == {}


def test_leaving_needs_a_choice(member: Laptop, urls: DatabaseUrls) -> None:
    """What is shared stays or goes as the user says, and nothing is sent afterwards."""
    member.team("share", CLOCK)
    member.push()
    assert "Give --withdraw or --keep" in member.team("leave", code=2).stderr
    held = member.held(urls)

    assert "may still be on the server" in member.team("leave", "--keep").stdout
    assert member.held(urls) == held
    assert "belongs to no team" in member.team("push", code=2).stderr


def test_a_member_who_left_and_withdrew_can_share_again(member: Laptop, url: str, urls: DatabaseUrls) -> None:
    """After joining again from the same machine, the same items can be shared."""
    member.team("share", CLOCK)
    member.push()
    before, person = member.conversations(urls), member.json("status")["person"]
    assert "deleted" in member.team("leave", "--withdraw").stdout
    assert member.held(urls) == {}

    joined(member, url, urls, person)
    assert member.json("push")["items"] == {}
    member.team("share", CLOCK)
    assert member.json("push")["refused"] == []
    assert member.conversations(urls) == before


def test_a_forgotten_exchange_is_withdrawn_at_once_and_undo_offers_it_again(member: Laptop, urls: DatabaseUrls) -> None:
    """`palaver forget` withdraws, and undo and the next push restore the same item."""
    member.write("oven", "talk-1", "door", "lamp", "grill")
    member.team("share", "oven")
    member.push()
    before = member.held(urls)
    token = json.loads(member.run("forget", "--mentions", "lamp fail", "--json").stdout)["token"]
    done = member.run("forget", "--mentions", "lamp fail", "--confirm", token)

    assert "Withdrawn from acme: " in done.stderr
    assert member.held(urls) == member.planned()
    assert "lamp" not in member.texts(urls)
    member.run("forget", "--undo", "1")
    member.archive()
    member.push()
    assert member.held(urls).keys() >= before.keys()
    assert "lamp" in member.texts(urls)


@pytest.mark.parametrize("erase", [False, True])
def test_a_forgotten_session_is_withdrawn(member: Laptop, urls: DatabaseUrls, *, erase: bool) -> None:
    """A deleted or erased session leaves nothing on the server."""
    member.write("oven", "talk-1", "door", "lamp")
    member.write("oven", "talk-2", "grill")
    member.team("share", "oven")
    member.push()
    member.forget(targets=("talk-1",), erase=erase)
    member.push()

    assert member.held(urls) == member.planned() != {}
    bodies = member.texts(urls)
    assert "grill" in bodies
    assert "lamp" not in bodies


class StricterRedactor(Redactor):
    """Redactor with a rule that laptops do not have."""

    def redact(self, text: str, *, keep_lines: bool = False) -> Redacted:
        """Return a text, and a secret if it speaks of a lamp."""
        redacted = super().redact(text, keep_lines=keep_lines)
        return replace(redacted, findings=(FoundSecret("brand", "tag"),)) if "lamp" in text else redacted


def test_a_refused_item_is_left_out_and_named(laptop: Laptop, urls: DatabaseUrls, pool: TeamDatabase) -> None:
    """If only the rules of the server find a secret, the item stays here, is named, and all others are sent."""
    with serving(pool, redactor=StricterRedactor(b"k" * 16)) as url:
        joined(laptop, url, urls)
        laptop.write("oven", "talk-1", "door", "lamp", "grill")
        laptop.team("share", "oven")
        report = laptop.json("push")

        assert {item["reason"] for item in report["refused"]} == {"contains a secret (brand)"}
        assert any(item["id"].startswith("ex-") for item in report["refused"])
        bodies = laptop.texts(urls)
        assert "grill" in bodies
        assert "lamp" not in bodies
        status = laptop.json("status")
        assert list(status["refused"]) == ["contains a secret (brand)"]
        assert (status["waiting"], status["leaving"]) == (0, 0)
        assert laptop.json("push")["refused"] == []
        laptop.team("unshare", "oven")
        assert laptop.held(urls) == {}


def test_read_only_commands_change_no_byte(member: Laptop, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    """In read-only mode, status and previews work and write nothing."""
    member.team("share", CLOCK)
    before = {path: path.read_bytes() for path in member.home.root.rglob("*") if path.is_file()}
    monkeypatch.setenv("PALAVER_READ_ONLY", "1")
    member.team("status")
    member.team("push", "--dry-run")
    member.team("share", LIBRARY, "--dry-run")

    assert {path: path.read_bytes() for path in member.home.root.rglob("*") if path.is_file()} == before
    assert member.held(urls) == {}


def test_a_member_needs_no_archive(tmp_path: Path, url: str, urls: DatabaseUrls) -> None:
    """Who has no archive yet joins with an empty one, and finds what the team shares. The status works before too."""
    laptop = Laptop(tmp_path / "new")
    assert "belongs to no team" in laptop.team("status").stdout
    assert not laptop.home.root.exists()

    joined(laptop, url, urls)
    assert laptop.json("status")["projects"] == []
    assert "Nothing new to send" in laptop.team("push").stdout
    assert "## From the team acme" in laptop.run("search", "which tide comes first").stdout


def test_joining_again_says_what_it_withdraws(member: Laptop, url: str, urls: DatabaseUrls) -> None:
    """After `leave --keep`, the items that the machine left are withdrawn and counted once."""
    with Archive(member.home) as archive:
        membership = archive.store.team.joined()
    assert membership is not None
    person = membership.person_name
    member.team("share", CLOCK)
    member.push()
    held = len(member.held(urls))
    assert "If this machine joins again, they are withdrawn." in member.team("leave", "--keep").stdout
    assert len(member.held(urls)) == held

    again = member.team("join", url, invited(urls, person))
    assert f"This machine left {held} items on the server before. They are withdrawn now" in again.stderr
    assert f"Withdrawn from acme: {held} items." in again.stderr
    assert member.held(urls) == {}
    member.team("leave")
    assert "ithdrawn" not in member.team("join", url, invited(urls, person)).stderr
    member.team("leave")
    assert member.json("join", url, invited(urls, person))["withdrawn"] == 0


def test_a_preview_names_the_command_that_shares(member: Laptop) -> None:
    """`share --dry-run` says that nothing is shared yet, and counts only what stays of this project."""
    member.team("share", LIBRARY, "--level", "metrics")
    tried = member.team("share", CLOCK, "--dry-run")

    assert "Nothing was shared or sent." in tried.stdout
    assert f"To send it: palaver team share {CLOCK}, then palaver team push" in tried.stdout
    assert "only metrics are shared" not in tried.stdout
    reply = member.json("share", CLOCK, "--level", "metrics", "--dry-run")
    assert "shared" not in reply
    assert reply["would_share"]["level"] == "metrics"
    assert reply["preview"]["stays"].keys() == {"only metrics are shared"}


def test_what_was_not_shared_cannot_be_unshared(member: Laptop) -> None:
    """`unshare` says so, and withdraws nothing."""
    with Archive(member.home) as archive:
        stored = archive.memories.remember(Memory("The cellar clock loses a minute a week")).stored

    assert member.team("unshare", CLOCK).stdout == f"{CLOCK} was not shared.\n"
    assert "was not shared by itself" in member.team("unshare", stored.id).stdout
    assert member.json("unshare", CLOCK) == {"unshared": None, "withdrawn": 0}


def test_a_revoked_machine_is_not_called_unreached(member: Laptop, urls: DatabaseUrls) -> None:
    """The status shows the refusal, and leaving says that tokens for agents remain."""
    with Archive(member.home) as archive:
        membership = archive.store.team.joined()
    assert membership is not None
    with administering(urls.owner) as connection:
        revoke(connection, find_team(connection, "acme"), membership.person_name)
    problem = member.team("status").stdout.splitlines()[1]

    assert problem.startswith("The team server refused: This machine is not a member of the team, or was revoked.")
    assert problem.endswith(f"team join {membership.url} CODE. To leave the team instead: palaver team leave --local")
    assert "Nothing waits" not in member.team("status").stdout
    assert member.json("status")["is_refused"]
    assert "palaver team push" not in member.team("unshare", CLOCK).stderr
    assert "palaver team leave --local" in member.team("leave", "--withdraw", code=1).stderr
    assert "Tokens for agents" in member.team("leave", "--local").stdout


@pytest.mark.parametrize("spelled", ["D:\\mill", "d:/mill"])
def test_a_project_in_a_folder_of_windows_is_shared(member: Laptop, urls: DatabaseUrls, spelled: str) -> None:
    """Drives in both cases and both slashes are one folder. What stays is counted, with the other folder's name."""
    for word, folder in (("wheel", "D:\\mill"), ("gear", "d:/mill"), ("belt", "E:\\barn")):
        member.write("mill", "talk-1", word, folder=Path(folder))
    reason = "folder of another project: E:\\barn"
    shared = {"name": "mill", "level": "team", "sessions": 1, "stays": {reason: 1}}

    tried = member.json("share", spelled, "--dry-run")
    assert (tried["would_share"], tried["preview"]["stays"]) == (shared, {reason: 1})
    shown = f"Stays on this machine: 1 exchange ({reason})"
    assert shown in member.team("share", spelled).stdout
    assert shown in member.team("status").stdout
    assert member.json("status")["projects"] == [shared]
    assert member.push().items["exchange"] == 2
    assert "belt" not in member.texts(urls)
    assert "Unknown project" in member.team("share", "D:\\barn", code=2).stderr


def test_a_folder_without_sessions_is_named(member: Laptop, tmp_path: Path) -> None:
    """A preview of a folder without sessions says why nothing would be sent."""
    folder = tmp_path / "empty"
    folder.mkdir()

    assert "No session of empty is archived yet." in member.team("share", str(folder), "--dry-run").stdout


def test_deleted_sessions_are_not_counted(member: Laptop) -> None:
    """Sessions are counted as in `palaver projects`: only those with exchanges."""
    member.write("oven", "talk-1", "door")
    member.write("oven", "talk-2", "grill")
    member.forget(targets=("talk-1",))

    assert member.json("share", "oven")["shared"]["sessions"] == 1
    assert "oven: 1 session" in member.run("projects").stdout


def test_a_removed_person_can_share_again(member: Laptop, urls: DatabaseUrls) -> None:
    """After a new code, one sentence says why the items stay, and `unshare` and `share` send them again."""
    member.team("share", CLOCK)
    member.push()
    with Archive(member.home) as archive:
        membership = archive.store.team.joined()
    assert membership is not None
    with administering(urls.owner) as connection:
        removal.remove(connection, find_team(connection, "acme"), membership.person_name)
    member.team("join", membership.url, invited(urls, membership.person_name))

    left_out = [row for row in member.team("push").stdout.splitlines() if row.startswith("Left out")]
    reason = "removed by the administrator; to share it again, unshare and share its project"
    assert [row.partition("(")[2] for row in left_out] == [f"{reason})."]
    assert "session" not in member.json("status")["own"]
    member.team("unshare", CLOCK)
    member.team("share", CLOCK)
    member.push()
    assert member.held(urls) == member.planned()
    assert member.json("status")["refused"] == {}
