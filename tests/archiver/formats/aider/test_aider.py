"""Aider's Markdown histories: sessions, authors of blocks, edits, and files that grow."""

from pathlib import Path

import pytest

from palaver.archiver.formats.aider import FORMAT
from palaver.core.conversation import Fact, Kind, Speaker, Turn

from ....cases import for_each
from ...formats import container_files
from ..container_files import contents, turn_tuples, turns
from ..reading import jsonl, lines, notes, unaccounted

NAME = ".aider.chat.history.md"
START = "\n# aider chat started at 2026-03-01 10:00:00\n\n"
ABOUT = "> /usr/bin/aider --model m  \n> Aider v0.86.2  \n> Model: m with whole edit format  \n\n"


def history(folder: Path, *blocks: str) -> Path:
    path = folder / NAME
    path.write_bytes("".join(blocks).encode())
    return path


def conversation(folder: Path, *blocks: str) -> list[tuple[Speaker, Kind, str]]:
    """Return the turns of a session after the block of the program's start."""
    [found] = turns(FORMAT, history(folder, START, ABOUT, *blocks)).values()
    return found[1:]


def test_a_session_is_read_block_by_block(tmp_path: Path) -> None:
    """Prompts, replies, notices of the program and applied edits have their authors."""
    found = conversation(
        tmp_path,
        "#### Fix the login  \n#### of the shop  \n\n",
        "<thinking-content-1a>\nHm\n</thinking-content-1a>\n\nI edit it.\n\n",
        "> Tokens: 3.2k sent, 21 received. Cost: $0.01 message, $0.01 session.  \n> Applied edit to a.py  \n",
        "> Running pytest  \n",
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login\nof the shop"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I edit it."),
        (Speaker.ASSISTANT, Kind.CALL, "edit: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.CALL, "shell: pytest"),
        (Speaker.HOST, Kind.INJECTED, "Tokens: 3.2k sent, 21 received. Cost: $0.01 message, $0.01 session."),
    ]


def test_headings_and_quotations_of_the_model_are_prose(tmp_path: Path) -> None:
    """Only the program ends its lines with two spaces."""
    reply = "#### Steps\n\n> quoted\n>>>>>>> REPLACE\n"

    assert conversation(tmp_path, "#### How?  \n\n", reply)[1:] == [(Speaker.ASSISTANT, Kind.PROSE, reply.strip())]


def test_texts_that_the_program_repeats_are_not_prompts(tmp_path: Path) -> None:
    """The words of a command are logged twice, and an editor gets the reply of an architect as its prompt."""
    found = conversation(
        tmp_path, "#### /architect Why?  \n\n#### Why?  \n\n", "Because.\n\n", "#### Because.  \n\n", "Done.\n"
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "/architect Why?"),
        (Speaker.ASSISTANT, Kind.PROSE, "Because."),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]


@for_each(
    "typed",
    ["/add a.py", "/ask", "!ls", "Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: skip"],
    label=lambda t: t[:4],
)
def test_commands_and_answers_open_no_exchange(tmp_path: Path, typed: str) -> None:
    """Commands to the program, and answers to its questions, are not prompts."""
    assert conversation(tmp_path, f"#### {typed}  \n") == [(Speaker.HOST, Kind.INJECTED, typed)]


def test_a_second_line_of_the_costs_is_not_prose(tmp_path: Path) -> None:
    """The report of tokens has a second line without a mark if the model has a cache."""
    tokens = "> Tokens: 13k sent, 5k cache write, 8k cache hit, 1.1k received.\nCost: $0.01 message, $0.01 session.  \n"
    [data] = contents(FORMAT, history(tmp_path, START, "#### Hi  \n\nHi!\n\n", tokens)).values()
    events = container_files.events(FORMAT, data)

    assert [kind for _, kind, _ in turn_tuples(events)] == [Kind.PROMPT, Kind.PROSE, Kind.INJECTED]
    assert notes(events, Fact.USAGE) == [(4, "4-0 13000 1100")]


def test_each_start_of_the_program_is_a_session(tmp_path: Path) -> None:
    """A start without a line has no session. Sessions keep their IDs and lines when the file grows."""
    second = "\n# aider chat started at 2026-03-02 10:00:00\n\n> /usr/bin/aider  \n\n#### Hi  \n"
    before = contents(FORMAT, history(tmp_path, START, START, ABOUT, "#### One  \n"))
    after = contents(FORMAT, history(tmp_path, START, START, ABOUT, "#### One  \n", "\nTwo\n", second))

    assert (len(before), len(after)) == (1, 2)
    [(name, data)] = before.items()
    assert after[name].startswith(data.removesuffix(data.splitlines(keepends=True)[-1]))


def test_the_blocks_contain_every_byte(tmp_path: Path) -> None:
    """The texts of the blocks join to the lines after the heading, with their line ends."""
    lines = f"{ABOUT}#### Hi  \n\nHello\n\n> Applied edit to a.py  \n".replace("\n", "\r\n")
    [data] = contents(FORMAT, history(tmp_path, START.strip(), "\r\n", lines)).values()
    texts = [line.partition(b'"text":"')[2].removesuffix(b'"}}\n') for line in data.splitlines(keepends=True)[1:]]

    assert b"".join(texts).replace(rb"\r\n", b"\r\n").decode() == lines
    assert unaccounted(FORMAT, data) == {}


def test_the_start_is_in_local_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has the time of its start, the folder of its file, the model and the version."""
    monkeypatch.setenv("TZ", "UTC")
    [session] = FORMAT.sessions(history(tmp_path, START, ABOUT, "#### Hi  \n"))
    data = b"".join(session.lines())
    known = FORMAT.identify(session.path, data)
    events = container_files.events(FORMAT, data)

    assert (known.started, known.cwd, session.changed_at) == (session.changed_at, str(tmp_path), known.ended)
    assert [notes(events, fact)[0][1] for fact in (Fact.MODEL, Fact.VERSION)] == ["m", "0.86.2"]
    assert {turn.at for turn in FORMAT.reader(known).read(lines(data)) if isinstance(turn, Turn)} == {known.started}


def test_histories_are_recognised_by_their_content(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own file and a configured file are found. Other Markdown files are not histories."""
    own = history(home, START)
    configured = tmp_path / "log.md"
    configured.write_text(START)
    (tmp_path / "notes.md").write_text("A session begins with `# aider chat started at `.\n")
    monkeypatch.setenv("AIDER_CHAT_HISTORY_FILE", str(configured))

    assert sorted(FORMAT.containers()) == sorted([own, configured])
    assert FORMAT.is_container(configured)
    assert not FORMAT.is_container(tmp_path / "notes.md")
    assert unaccounted(FORMAT, jsonl([{"message": {"author": 3, "text": 4}}])) == {}
