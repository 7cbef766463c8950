"""Excluded exchanges, sessions and folders stay in the raw copies only, and their lines are counted."""

# pyright: reportPrivateUsage=false

import unicodedata

import pytest

from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.reading.parsing import Exclusion
from palaver.archiver.redaction.redactor import Unindexed
from palaver.core.errors import ConfigInvalid

from ..history import FORK, ORIGINAL, History, talk

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
