"""A copy is recognised by its content and position, even if it has other record IDs and other times."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.reading.lineage import Copies, Lineage

from ..formats.claude_code.claude_lines import assistant, result, text, tool, user
from ..formats.codex import codex_lines
from ..history import FORK, ORIGINAL, History

THIRD = "33333333-0000-4000-8000-000000000003"


def said(*words: str, session: str = ORIGINAL, ids: str = "a", day: int = 1, origin: str = "") -> list[dict[str, Any]]:
    """Return one exchange per word. Its record IDs begin with `ids`, and its times are on a day of May."""
    lines = list[dict[str, Any]]()
    for place, word in enumerate(words):
        prompt, _, reply = word.partition(":")
        common: dict[str, Any] = {"sessionId": session, "cwd": "/home/demo/shop"}
        if origin:
            common["forkedFrom"] = {"sessionId": origin, "messageUuid": f"{place}"}
        for step, make in enumerate((user(f"{prompt}?"), assistant(text(f"{reply or prompt}!"), id=f"{ids}-{word}"))):
            at = f"2026-05-{day:02}T10:{place:02}:{step:02}.000Z"
            lines.append({**make, **common, "uuid": f"{ids}-{len(lines)}", "timestamp": at})
    return lines


def forked(
    *words: str, session: str = FORK, origin: str = ORIGINAL, ids: str = "b", day: int = 1
) -> list[dict[str, Any]]:
    """Return the lines that a fork copied, with IDs of its own."""
    return said(*words, session=session, ids=ids, day=day, origin=origin)


def ingest_in_order(
    history: History, files: dict[str, list[dict[str, Any]]], order: tuple[int, ...], *, at_once: bool
) -> None:
    names = list(files)
    for at, place in enumerate(order):
        history.write(files[names[place]], names[place], at=at)
        if not at_once:
            history.ingest()
    for _ in range(3):
        history.ingest()


def prompts_in_any_order(root: Path, files: dict[str, list[dict[str, Any]]]) -> list[dict[str, list[str]]]:
    """Return the prompts of each session for each order of arrival, in one run and in several runs."""
    found = list[dict[str, list[str]]]()
    for number, order in enumerate(permutations(range(len(files)))):
        for at_once in (True, False):
            with History(root / f"{number}{at_once}") as history:
                ingest_in_order(history, files, order, at_once=at_once)
                assert history.ingest().reread == 0, (order, at_once)
                found.append({session: sorted(history.prompts(session)) for session in files})
    return found


def test_a_fork_owns_only_its_own_exchanges_whichever_file_arrives_first(tmp_path: Path) -> None:
    """Copies with new IDs, new times or both belong to their origin, in any order of arrival."""
    forks = {
        "new IDs": [*forked("one", "two"), *said("own", session=FORK, ids="c", day=3)],
        "new times": [*forked("one", "two", ids="a", day=2), *said("own", session=FORK, ids="c", day=3)],
        "new IDs and times": [*forked("one", "two", day=2), *said("own", session=FORK, ids="c", day=3)],
        "same times without a link": [*said("one", session=FORK, ids="b"), *said("own", ids="c", day=3)],
        "only the first exchange": [*forked("one", day=2), *said("own", session=FORK, ids="c", day=3)],
    }
    for name, fork in forks.items():
        found = prompts_in_any_order(tmp_path / name, {ORIGINAL: said("one", "two"), FORK: fork})
        assert found == [{ORIGINAL: ["one?", "two?"], FORK: ["own?"]}] * 4, name


def test_a_fork_of_a_fork_owns_only_its_own_exchanges(tmp_path: Path) -> None:
    """Each line belongs to the first session that contained it, for any order of three nested files."""
    files = {
        ORIGINAL: said("one", "on"),
        FORK: [*forked("one", day=2), *said("two", session=FORK, ids="c", day=2)],
        THIRD: [
            *forked("one", "two", session=THIRD, origin=FORK, ids="d", day=3),
            *said("three", session=THIRD, ids="e", day=3),
        ],
    }
    expected = {ORIGINAL: ["on?", "one?"], FORK: ["two?"], THIRD: ["three?"]}
    assert prompts_in_any_order(tmp_path, files) == [expected] * 12


def test_two_forks_of_a_missing_session_share_its_exchanges(tmp_path: Path) -> None:
    """If the origin is not archived, one of its forks contains the shared exchanges."""
    files = {
        FORK: [*forked("one", "two"), *said("left", session=FORK, ids="c", day=2)],
        THIRD: [*forked("one", "two", session=THIRD, ids="d"), *said("right", session=THIRD, ids="e", day=3)],
    }
    expected = {FORK: ["left?", "one?", "two?"], THIRD: ["right?"]}
    assert prompts_in_any_order(tmp_path, files) == [expected] * 4


def test_sessions_are_not_merged_without_evidence(tmp_path: Path) -> None:
    """Equal prompts prove no copy: they need an equal reply, and a link or an equal time."""
    pairs = {
        "same beginning by chance": (said("hi"), said("hi", session=FORK, ids="b", day=2)),
        "a fork that asks the next prompt too": (said("one", "go on:left"), forked("one", "go on:right", day=2)),
        "a fork that begins anew": (said("one", "two"), forked("three", "one", day=2)),
    }
    counts = {"same beginning by chance": 2, "a fork that asks the next prompt too": 3, "a fork that begins anew": 4}
    for name, (original, fork) in pairs.items():
        for found in prompts_in_any_order(tmp_path / name, {ORIGINAL: original, FORK: fork}):
            assert sum(map(len, found.values())) == counts[name], name


def test_a_prompt_that_was_typed_twice_stays_two_exchanges(tmp_path: Path) -> None:
    """Equal exchanges of one session are kept, also when a fork copies both."""
    files = {
        ORIGINAL: said("one", "go on", "go on"),
        FORK: [*forked("one", "go on", "go on", day=2), *said("go on", session=FORK, ids="c", day=3)],
    }
    expected = {ORIGINAL: ["go on?", "go on?", "one?"], FORK: ["go on?"]}
    assert prompts_in_any_order(tmp_path, files) == [expected] * 4


def test_a_forked_sub_agent_owns_only_its_task(tmp_path: Path) -> None:
    """A sub-agent can begin with a copy of its parent's conversation. The parent keeps its prompts and its title."""
    for name, ids in {"same IDs": "a", "new IDs": "b"}.items():
        for parent_first in (True, False):
            with History(tmp_path / f"{name}{parent_first}") as history:
                agent = f"{ORIGINAL}/subagents/agent-b0b0b0b0"
                task = [*said("one", "two", ids=ids), *said("measure", ids="c", day=2)]
                files = {ORIGINAL: said("one", "two"), agent: [{**line, "isSidechain": True} for line in task]}
                for at, session in enumerate(sorted(files, reverse=not parent_first)):
                    path = history.path(session)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    history.write(files[session], session, at=at)
                    history.ingest()
                history.ingest()
                assert history.prompts() == ["one?", "two?"], (name, parent_first)
                assert history.prompts("agent-b0b0b0b0") == ["measure?"], (name, parent_first)
                assert history.session().title == "one?", (name, parent_first)


def test_a_session_that_was_resumed_in_a_new_file_is_not_doubled(tmp_path: Path) -> None:
    """A program can resume a session in a new file that repeats all records under other IDs and times."""
    resumed = [*said("one", "two", ids="b", day=2), *said("own", ids="c", day=3)]
    for order in permutations((("shop", said("one", "two")), ("moved", resumed))):
        with History(tmp_path / order[0][0]) as history:
            for at, (project, lines) in enumerate(order):
                history.write(lines, project=project, at=at)
                history.ingest()
            assert history.ingest().reread == 0
            assert sorted(history.prompts()) == ["one?", "own?", "two?"], order[0][0]
            first = min(history.stored(), key=lambda each: each.exchange.started or 0)
            assert history.store.sources.load(first.source).archived.split("/")[1] == "shop", order[0][0]
            number = history.store.sessions.find("claude-code", ORIGINAL) or 0
            keys = history.store.summaries.conversation(number)
            told = [each.exchange.prompt for each in history.store.exchanges.load(keys).values()]
            assert sorted(told) == ["one?", "own?", "two?"], order[0][0]


def test_moved_exchanges_keep_their_ids(history: History) -> None:
    """If a fork was archived before its origin, the origin takes over the IDs of the shared exchanges."""
    history.write([*forked("one", "two", day=2), *said("own", session=FORK, ids="c", day=3)], FORK, at=1)
    history.ingest()
    before = {each.exchange.prompt: each.key for each in history.stored()}
    history.write(said("one", "two"), at=2)
    history.ingest()

    assert {each.exchange.prompt: each.key for each in history.stored()} == before
    number = history.store.sessions.find("claude-code", ORIGINAL)
    days = {each.exchange.started for each in history.stored() if each.session == number}
    assert min(filter(None, days)) == 1_777_629_600_000  # 2026-05-01T10:00:00Z, the time in the origin.
    assert set(history.store.repetitions.of_exchanges([before["one?"], before["two?"]]).values()) == {(FORK,)}


def test_an_origin_keeps_its_own_ids(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an archive that contains an exchange twice, the exchange of the origin stays, whichever file is read first."""

    def none(*_: object, **__: object) -> Copies:
        return Copies()

    for at, name in enumerate((ORIGINAL, FORK, THIRD), 1):
        copied = [] if name == ORIGINAL else forked("one", session=name, ids=name, day=2)
        own = said("one", "two") if name == ORIGINAL else said("own", session=name, ids=f"{name}-own", day=3)
        history.write([*copied, *own], name, at=at)
    with monkeypatch.context() as earlier:
        earlier.setattr(Lineage, "copies", none)
        history.ingest()
    assert [each.exchange.prompt for each in history.stored()].count("one?") == 3
    keys = {each.key for each in history.stored() if each.exchange.prompt != "one?" or each.source == 1}
    with history.store.transaction():
        history.store.sources.outdate()
    history.ingest()

    assert {each.key for each in history.stored()} == keys
    assert (history.prompts(), history.prompts(FORK), history.prompts(THIRD)) == (["one?", "two?"], ["own?"], ["own?"])


def test_abandoned_exchanges_may_be_missing_in_a_fork(history: History) -> None:
    """A fork copies the active branch. The exchanges after an abandoned branch are recognised too."""
    original = said("one", "wrong", "right")
    for line, parent in zip(original[2::2], ("a-1", "a-1"), strict=True):
        line["parentUuid"] = parent
    history.write(original, at=1)
    history.write([*forked("one", "right", day=2), *said("own", session=FORK, ids="c", day=3)], FORK, at=2)
    history.ingest()

    assert (history.prompts(), history.prompts(FORK)) == (["one?", "wrong?", "right?"], ["own?"])


def test_results_that_only_a_copy_contains_are_kept(history: History) -> None:
    """A tool result that is missing in the original stays in the copy."""
    call = [
        *said("one"),
        {**assistant(tool("Bash", {"command": "ls"}), id="m"), "uuid": "call", "sessionId": ORIGINAL},
    ]
    copy = [{**line, "uuid": f"copy-{line['uuid']}", "sessionId": FORK} for line in call]
    copy[0]["forkedFrom"] = {"sessionId": ORIGINAL, "messageUuid": "x"}
    history.write(call, at=1)
    history.write([*copy, {**result("printed"), "uuid": "r"}, *said("own", session=FORK, ids="c", day=3)], FORK, at=2)
    history.ingest()

    texts = [turn.text for each in history.exchanges(FORK) for turn in each.turns]
    assert texts == ["printed", "own?", "own!"]


def test_files_that_grow_after_a_fork_add_only_their_own_exchanges(history: History) -> None:
    """Origin and fork grow. The fork was also taken from lines of the origin that were read later."""
    history.write(said("one"), at=1)
    history.ingest()
    history.write([*forked("one", "two", day=2), *said("own", session=FORK, ids="c", day=3)], FORK, at=2)
    history.ingest()
    assert history.prompts(FORK) == ["two?", "own?"]

    history.append(said("one", "two", "on")[2:], at=3)
    history.append(said("further", session=FORK, ids="d", day=4), FORK, at=4)
    history.ingest()
    history.ingest()
    assert (sorted(history.prompts()), history.prompts(FORK)) == (["on?", "one?", "two?"], ["own?", "further?"])


@pytest.mark.parametrize("origin_first", [True, False])
def test_a_codex_fork_with_new_times_counts_its_tokens_once(history: History, origin_first: bool) -> None:
    """Codex gives copied items new times and no IDs. Replies, tool calls and token counts belong to the origin."""

    def count(total: int) -> dict[str, Any]:
        used = {"input_tokens": 100, "output_tokens": 10}
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": used}
        return codex_lines.event("token_count", info=info)

    shared = [*codex_lines.user_prompt("one?"), *codex_lines.agent_reply("one!"), count(100)]
    later = [{**line, "timestamp": "2026-03-02T10:00:00.250Z"} for line in shared]
    own = [*codex_lines.user_prompt("own?"), *codex_lines.agent_reply("own!"), count(200)]
    header = codex_lines.meta(id=codex_lines.PARENT)
    files = {
        codex_lines.PARENT: [header, *shared],
        codex_lines.SESSION: [codex_lines.meta(forked_from_id=codex_lines.PARENT), header, *later, *own],
    }
    for at, session in enumerate(files if origin_first else reversed(files)):
        history.write(files[session], session, at=at)
        history.ingest()
    history.ingest()

    found = [
        (history.store.sessions.load(each.session).native_id, each.exchange.prompt, each.exchange.tokens_in)
        for each in history.stored()
    ]
    assert sorted(found) == [(codex_lines.SESSION, "own?", 100), (codex_lines.PARENT, "one?", 100)]
