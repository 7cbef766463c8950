"""Lines that several sessions share belong to the session that contained them first."""

# pyright: reportPrivateUsage=false

from itertools import permutations
from typing import Any

import pytest

from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.reading.lineage import Copies, Lineage
from palaver.core.observation import Evidence, Observation, ObservationType

from ..formats.codex import codex_lines
from ..history import FORK, ORIGINAL, History, talk

THIRD = "33333333-0000-4000-8000-000000000003"


def fork_lines(*words: str, session: str, origin: str) -> list[dict[str, Any]]:
    """Return the lines that a fork repeats. Each line contains the ID of its original session."""
    return [{**line, "forkedFrom": {"sessionId": origin, "messageUuid": "m"}} for line in talk(*words, session=session)]


def repeating_sessions(history: History, session: str) -> list[tuple[str, ...]]:
    """Return, for each exchange of a session, the other sessions that repeat it."""
    number = history.store.sessions.find("claude-code", session)
    keys = [each.key for each in history.stored() if each.session == number]
    found = history.store.repetitions.of_exchanges(keys)
    return [found.get(key, ()) for key in keys]


@pytest.mark.parametrize("runs", [1, 2])
def test_lines_belong_to_the_origin_of_a_fork(history: History, runs: int) -> None:
    """Shared lines belong to the origin, even if it was modified or ingested last. Moved exchanges keep their IDs."""
    history.write([*fork_lines("one", "two", session=FORK, origin=ORIGINAL), *talk("apart", session=FORK)], FORK, at=1)
    known = dict[str, int]()
    if runs == 2:
        history.ingest()
        assert history.prompts(FORK) == ["one?", "two?", "apart?"]
        known = {each.exchange.prompt: each.key for each in history.stored()}
    history.write(talk("one", "two", "on"), at=2)
    history.ingest()

    assert history.prompts() == ["one?", "two?", "on?"]
    assert history.prompts(FORK) == ["apart?"]
    assert repeating_sessions(history, ORIGINAL) == [(FORK,), (FORK,), ()]
    assert history.session(FORK).title == "apart?"
    assert history.ingest().reread == 0
    now = {each.exchange.prompt: each.key for each in history.stored()}
    assert now.items() >= known.items()
    assert now["on?"] not in known.values()


def test_extracted_observations_move_to_the_origin(history: History) -> None:
    """Observations of a language model move from a fork to its origin. Rules observe moved exchanges again."""
    shared = fork_lines("one", "two", "three", session=FORK, origin=ORIGINAL)
    history.write([*shared, *talk("apart", session=FORK)], FORK, at=1)
    history.ingest()
    store, known_keys = history.store, dict[str, int]()
    with store.transaction():
        for stored in history.stored():
            by = "rules" if stored.exchange.prompt == "two?" else "llm:model:1"
            proof = (Evidence(stored.exchange.turns[0].line, stored.exchange.turns[-1].line, stored.exchange.prompt),)
            title = stored.exchange.prompt
            fact = Observation(ObservationType.DECISION, title, "", "", (), (), (), (), evidence=proof, extractor=by)
            store.observations.replace(stored.key, stored.session, [fact], by)
            [each] = store.observations.of_exchange(stored.key)
            known_keys[title] = each.key
    before = history.stored()

    own = [*talk("zero", "one", "two"), *talk("three")[:1], *talk("on")]
    history.write(own, at=2)
    history.ingest()

    now = {each.exchange.prompt: each for each in history.stored()}
    found = store.observations.of_exchanges([each.key for each in now.values()])
    locations = {name: [(each.key, each.session) for each in found.get(stored.key, ())] for name, stored in now.items()}
    session, fork = (store.sessions.find("claude-code", each) for each in (ORIGINAL, FORK))
    assert locations == {
        "zero?": [],
        "one?": [(known_keys["one?"], session)],
        "two?": [(known_keys["two?"], session)],
        "three?": [],
        "on?": [],
        "": [],
        "apart?": [(known_keys["apart?"], fork)],
    }
    [one] = found[now["one?"].key]
    assert one.observation.evidence == (Evidence(3, 4, "one?"),)
    assert (now["one?"].exchange.span.start_line, now["one?"].source) == (3, history.source().id)
    assert now["two?"].key in {each.key for each in store.exchanges.unobserved("rules", 9)}
    assert now["one?"].key not in {each.key for each in store.exchanges.unobserved("rules", 9)}
    assert {each.key for each in before} & {each.key for each in now.values()} == {
        now[name].key for name in ("one?", "two?", "apart?")
    }
    assert not store.integrity.without_evidence()


def test_an_archive_of_an_earlier_version_is_corrected(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that an earlier version attributed to a fork move to its origin when the copies are read again."""

    def none(*_: object, **__: object) -> Copies:
        return Copies()

    history.write([*fork_lines("one", "two", session=FORK, origin=ORIGINAL), *talk("apart", session=FORK)], FORK, at=1)
    history.write(talk("one", "two", "on"), at=2)
    with monkeypatch.context() as earlier:
        earlier.setattr(Lineage, "copies", none)
        history.ingest()
    assert (history.prompts(), history.prompts(FORK)) == (["on?"], ["one?", "two?", "apart?"])
    keys = {each.exchange.prompt: each.key for each in history.stored()}
    with history.store.transaction():
        history.store._database.run("UPDATE source SET rules = '3'")

    tally = Ingest(history.store, history.raw).run([], budget=0)
    assert (tally.reread, tally.outdated, history.prompts()) == (0, 2, ["on?"])
    assert history.ingest().outdated == 0

    assert (sorted(history.prompts()), history.prompts(FORK)) == (["on?", "one?", "two?"], ["apart?"])
    assert {each.exchange.prompt: each.key for each in history.stored()} == keys
    assert history.ingest().reread == 0


def test_codex_forks_refer_to_their_origin(history: History) -> None:
    """The header of a Codex fork contains the ID of its origin, so shared lines belong to the origin."""
    shared = [*codex_lines.user_prompt("one?"), *codex_lines.agent_reply("one!")]
    fork = [
        codex_lines.meta(forked_from_id=codex_lines.PARENT),
        codex_lines.meta(id=codex_lines.PARENT),
        *shared,
        *codex_lines.user_prompt("apart?"),
    ]
    history.write(fork, codex_lines.SESSION, at=1)
    history.write(
        [codex_lines.meta(id=codex_lines.PARENT), *shared, *codex_lines.user_prompt("on?")], codex_lines.PARENT, at=2
    )
    history.ingest()
    prompts = [(history.store.sessions.load(each.session).native_id, each.exchange.prompt) for each in history.stored()]

    assert sorted(prompts) == [
        (codex_lines.SESSION, "apart?"),
        (codex_lines.PARENT, "on?"),
        (codex_lines.PARENT, "one?"),
    ]


def test_a_fork_without_its_origin_is_complete(history: History) -> None:
    """A fork keeps lines that it repeats until its origin contains them."""
    history.write(talk("one"), at=1)
    history.ingest()
    history.write(fork_lines("one", "two", session=FORK, origin=ORIGINAL), FORK, at=2)
    history.ingest()
    assert (history.prompts(), history.prompts(FORK)) == (["one?"], ["two?"])

    history.append(talk("two", "three"), at=3)
    history.ingest()

    assert (history.prompts(), history.prompts(FORK)) == (["one?", "two?", "three?"], [])
    assert repeating_sessions(history, ORIGINAL) == [(FORK,), (FORK,), ()]


@pytest.mark.parametrize("ages", [*permutations((1, 2, 3))], ids=lambda ages: "".join(map(str, ages)))
@pytest.mark.parametrize("runs", [1, 3])
def test_lines_of_nested_forks_belong_to_the_first(history: History, ages: tuple[int, ...], runs: int) -> None:
    """For any ages and ingest order of nested forks, each line belongs to the first session that contained it."""
    files = {
        ORIGINAL: talk("one"),
        FORK: [*fork_lines("one", session=FORK, origin=ORIGINAL), *talk("two", session=FORK)],
        THIRD: [*fork_lines("one", "two", session=THIRD, origin=FORK), *talk("three", session=THIRD)],
    }
    for at, (session, lines) in sorted(zip(ages, files.items(), strict=True)):
        history.write(lines, session, at=at)
        if runs == 3:
            history.ingest()
    for _ in range(3):
        history.ingest()

    assert [history.prompts(session) for session in files] == [["one?"], ["two?"], ["three?"]]
    assert [sorted(*repeating_sessions(history, session)) for session in files] == [[FORK, THIRD], [THIRD], []]
    assert history.ingest().reread == 0


@pytest.mark.parametrize("ages", [*permutations((1, 2, 3))], ids=lambda ages: "".join(map(str, ages)))
def test_a_cycle_of_forks_is_harmless(history: History, ages: tuple[int, ...]) -> None:
    """Sessions that claim to be forks of each other lose no line and are not read again in every run."""
    names = (ORIGINAL, FORK, THIRD)
    for at, session, origin in zip(ages, names, (FORK, THIRD, ORIGINAL), strict=True):
        history.write(fork_lines("one", session=session, origin=origin), session, at=at)
        history.ingest()
    for _ in range(4):
        history.ingest()

    assert sorted(prompt for session in names for prompt in history.prompts(session)) == ["one?"]
    assert history.ingest().reread == 0
