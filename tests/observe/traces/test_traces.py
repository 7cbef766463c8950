"""Code traces attribute lines to agents, tested with real git repositories."""

import shutil
from pathlib import Path

import pytest

from palaver.core.errors import DocumentNotFound, InvalidInput
from palaver.observe.traces import Attributed, Certainty

from .working import Working

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

PRICE = "def price(net: float) -> float:\n    return net * 1.19\n"
ONE, TWO = "one-session", "two-session"


@pytest.fixture
def working(tmp_path: Path) -> Working:
    """Return an empty repository."""
    return Working(tmp_path)


def certainties(found: Attributed) -> dict[str, int]:
    """Return the number of lines per certainty."""
    return {str(each): found.count(each) for each in Certainty if found.count(each)}


def urls(found: Attributed) -> dict[str, list[tuple[int, int]]]:
    """Return the line ranges per conversation URL."""
    traces = [share.trace for share in found.shares if share.trace]
    conversations = [each for trace in traces for file in trace.files for each in file.conversations]
    return {each.url: list(each.ranges) for each in conversations}


def test_lines_are_attributed_per_commit(working: Working) -> None:
    """Lines of the user, of two conversations and of uncommitted edits are distinguished."""
    file = working.type("shop/price.py", "# By hand.\nimport math\n")
    first = working.commit()
    working.edit(ONE, "shop/price.py", "import math\n", f"import math\n\n\n{PRICE}")
    second = working.commit()
    working.edit(TWO, "shop/price.py", "1.19", "RATE")
    third = working.commit()
    file.write_text(f"{file.read_text()}print(price(3))\n")

    with working.traces() as traces:
        found = traces.of_file(file)
        [alone], [blank] = traces.of_file(file, 6).shares, traces.of_file(file, 4).shares

    assert [(share.commit.sha, share.lines) for share in found.shares] == [
        (second, ((3, 5),)),
        (first, ((1, 2),)),
        (third, ((6, 6),)),
        ("0" * 40, ((7, 7),)),
    ]
    assert (found.path, found.versioned, found.total, found.written) == ("shop/price.py", True, 7, 4)
    assert certainties(found) == {"certain": 2, "likely": 2, "none": 3}
    assert urls(found) == {f"session:{ONE}": [(3, 5)], f"session:{TWO}": [(6, 6)]}
    assert (alone.commit.sha, alone.certainties) == (third, {Certainty.CERTAIN: 1})
    assert (blank.lines, blank.certainties) == (((4, 4),), {Certainty.LIKELY: 1})
    assert found.shares[-1].commit.uncommitted


def test_lines_of_the_user_are_only_possible(working: Working) -> None:
    """A line of the user is attributed as `possible` at most, and only after the agent changed the file."""
    working.type("a.py", "kept = 1\n")
    working.commit()
    working.edit(ONE, "a.py", "kept = 1\n", "kept = 1\nadded = 2\n")
    file = working.type("a.py", "kept = 1\nadded = 2\ntyped_by_hand = 3\n")
    working.commit()

    with working.traces() as traces:
        found = traces.of_file(file)

    assert certainties(found) == {"certain": 1, "possible": 1, "none": 1}


def test_existing_lines_are_not_attributed(working: Working) -> None:
    """Existing lines that an agent repeats when it rewrites a file are not attributed to the agent."""
    working.type("a.py", "first = 1\nsecond = 2\n")
    working.commit()
    working.edit(ONE, "a.py", "first = 1\nsecond = 2\n", "first = 1\nsecond = 2\nthird = 3\n")
    file = working.write(TWO, "a.py", "first = 1\nsecond = 2\nthird = 3\nfourth = 4\n")
    working.commit()

    with working.traces() as traces:
        found = traces.of_file(file)

    assert urls(found) == {f"session:{ONE}": [(3, 3)], f"session:{TWO}": [(4, 4)]}
    assert certainties(found) == {"certain": 2, "none": 2}


def test_reformatted_lines_are_likely(working: Working) -> None:
    """A line that differs only in whitespace or punctuation is attributed as `likely`."""
    working.write(ONE, "a.py", "price = call( net,gross )\n")
    file = working.type("a.py", "price = call(net, gross)\n")
    working.commit()

    with working.traces() as traces:
        assert certainties(traces.of_file(file)) == {"likely": 1}


@pytest.mark.parametrize("content", ["a = 1\nb = 2\n", "{\n}\n", "x\n\n"])
@pytest.mark.parametrize("committed", [True, False])
def test_short_lines_of_a_complete_commit_are_attributed(working: Working, content: str, committed: bool) -> None:
    """A short line is attributed to an agent only if agents wrote every line of the commit."""
    file = working.write(ONE, "a.py", content)
    if committed:
        working.commit()

    with working.traces() as traces:
        assert certainties(traces.of_file(file)) == {"likely": 2}


def test_short_lines_next_to_user_lines_are_not_attributed(working: Working) -> None:
    """A bracket that the user typed is not attributed to an agent that also wrote a bracket."""
    working.write(ONE, "a.py", "{\n}\n")
    file = working.type("a.py", "{\n}\ntyped_by_hand = 1\n}\n")
    working.commit()

    with working.traces() as traces:
        assert certainties(traces.of_file(file)) == {"possible": 4}


def test_renamed_and_moved_files_are_attributed(working: Working) -> None:
    """Renamed files and files in other worktrees keep their attribution."""
    working.write(ONE, "old.py", PRICE)
    working.commit()
    working.git("mv", "old.py", "new.py")
    working.commit()
    working.git("worktree", "add", "--quiet", str(working.root / "tree"), "HEAD", "--detach")

    with working.traces() as traces:
        here = traces.of_file(working.repository / "new.py")
        there = traces.of_file(working.root / "tree" / "new.py")

    assert certainties(here) == {"certain": 2}
    assert certainties(there) == {"likely": 2}
    assert there.path == "new.py"


def test_untracked_files_are_attributed_by_text(tmp_path: Path, working: Working) -> None:
    """Files outside a repository and untracked files are attributed by their text."""
    working.write(ONE, "new.py", PRICE)
    outside = tmp_path / "outside.py"
    working.agent(TWO, "Write", {"file_path": str(outside), "content": "left = right\n"})
    outside.write_text("left = right\n")

    with working.traces() as traces:
        untracked, apart = traces.of_file(working.repository / "new.py"), traces.of_file(outside)

    for found, session, lines in ((untracked, ONE, 2), (apart, TWO, 1)):
        assert (found.versioned, certainties(found)) == (False, {"certain": lines})
        assert found.shares[0].commit.uncommitted
        assert list(urls(found)) == [f"session:{session}"]


@pytest.mark.parametrize("name", ["--output=x", "-L1,2", ":(glob)*", "a\nb.py", "ünï cödé.py", "a*b.py", "$(touch y)"])
def test_file_names_are_literal(working: Working, name: str) -> None:
    """A file name is never parsed as an option or a pattern."""
    file = working.write(ONE, name, PRICE)
    working.type("beside.py", "\n" * 9)
    working.commit()
    before = sorted(working.repository.iterdir())

    with working.traces() as traces:
        found = traces.of_file(file)
        [listed], total = traces.latest()

    assert (found.path, certainties(found), total) == (name, {"certain": 2}, 1)
    assert sorted(working.repository.iterdir()) == before
    assert [(each.path, each.conversations[0].ranges) for each in listed.files] == [(name, ((1, 2),))]


def test_git_runs_nothing_that_the_repository_configures(working: Working) -> None:
    """Git runs no file system monitor, external diff, signature program or filter that a repository configures."""
    file = working.write(ONE, "a.py", PRICE)
    working.type(".gitattributes", "*.py diff=evil filter=evil\n")
    working.commit()
    working.edit(TWO, "a.py", "1.19", "1.07")
    for name in ("core.fsmonitor", "diff.evil.textconv", "diff.evil.command", "diff.external", "gpg.program"):
        working.git("config", name, f"touch {working.root / 'ran'}; true")
    working.git("config", "log.showSignature", "true")
    for name in ("filter.evil.clean", "filter.evil.process", "filter.evil.smudge"):
        working.git("config", name, f"touch {working.root / 'ran'}; cat")

    with working.traces() as traces:
        assert certainties(traces.of_file(file)) == {"certain": 2}
        assert traces.latest()[1] == 2

    assert not (working.root / "ran").exists()


def test_git_is_not_run_with_an_unsafe_filter(working: Working) -> None:
    """If a filter cannot be disabled, git does not run and lines are attributed by their text."""
    file = working.write(ONE, "a.py", PRICE)
    working.type(".gitattributes", "*.py filter=e=vil\n")
    working.commit()
    working.edit(TWO, "a.py", "1.19", "1.07")
    working.git("config", "filter.e=vil.clean", f"touch {working.root / 'ran'}; cat")

    with working.traces() as traces:
        found = traces.of_file(file)

    assert (found.versioned, certainties(found)) == (False, {"certain": 2})
    assert not (working.root / "ran").exists()


def test_latest_traces_are_listed_by_commit(working: Working) -> None:
    """Traces are listed newest first with their added lines. Uncommitted edits are grouped by conversation."""
    working.write(ONE, "a.py", "first = 1\n")
    working.write(TWO, "b.py", "second = 2\n")
    first = working.commit()
    working.edit(ONE, "a.py", "first = 1\n", "first = 1\nthird = 3\nfourth = 4\n")
    second = working.commit()
    working.write(TWO, "c.py", "fifth = 5\n")

    with working.traces() as traces:
        (latest, total), (of_one, _) = traces.latest(), traces.latest(f"session:{ONE}")
        (only, of_all), (nobody, none) = traces.latest(limit=1), traces.latest("session:nobody")

    assert [trace.revision for trace in latest] == ["", second, first]
    assert [trace.revision for trace in of_one] == [second, first]
    assert [trace.as_json() for trace in only] == [latest[0].as_json()]
    assert (nobody, none) == ([], 0)
    assert total == of_all == 3
    assert latest[1].as_json() == {
        "version": "0.1.0",
        "id": latest[1].id,
        "timestamp": "2026-02-02T03:30:00Z",
        "vcs": {"type": "git", "revision": second},
        "tool": {"name": "claude-code", "version": ""},
        "files": [
            {
                "path": "a.py",
                "conversations": [
                    {
                        "url": f"session:{ONE}",
                        "contributor": {"type": "ai", "model_id": "model-1"},
                        "ranges": [{"start_line": 2, "end_line": 3}],
                    }
                ],
            }
        ],
    }
    assert {file.path for file in latest[2].files} == {"a.py", "b.py"}
    assert latest[0].as_json()["vcs"] is None


def test_missing_repository_is_tolerated(working: Working) -> None:
    """Without a repository, conversations are listed with their files and without a commit."""
    file = working.write(ONE, "a.py", PRICE)
    working.commit()
    shutil.rmtree(working.repository)

    with working.traces() as traces:
        [trace], _ = traces.latest()
        with pytest.raises(DocumentNotFound):
            traces.of_file(file)

    assert (trace.revision, [each.path for each in trace.files]) == ("", [str(file)])


@pytest.mark.parametrize("name", ["none.py", "a" * 300, "a\0b", "~nobody-here/a.py", "loop", "folder"])
def test_missing_file_is_an_error(working: Working, name: str) -> None:
    """A path that is not a file raises `DocumentNotFound`."""
    (working.repository / "loop").symlink_to("loop")
    (working.repository / "folder").mkdir()
    path = Path(name) if name.startswith("~") else working.repository / name

    with working.traces() as traces, pytest.raises(DocumentNotFound):
        traces.of_file(path)


def test_lines_are_counted_from_one(working: Working) -> None:
    """Line numbers start at 1. Numbers outside the file are rejected, and an empty file has no lines."""
    file = working.type("a.py", "one\ntwo\n")
    empty = working.type("empty.py", "")
    working.commit()

    with working.traces() as traces:
        for line in (0, -1, 3):
            with pytest.raises(InvalidInput, match=f"No such line: {line}"):
                traces.of_file(file, line)
        assert traces.of_file(empty).total == 0


def test_file_without_agents_has_no_attribution(working: Working) -> None:
    """A file that no agent wrote has no attribution."""
    file = working.type("a.py", "one\ntwo\n")
    working.commit()

    with working.traces() as traces:
        assert certainties(traces.of_file(file)) == {"none": 2}
        assert traces.latest() == ([], 0)
