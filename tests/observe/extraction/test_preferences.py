"""Only lasting preferences that the user typed are proposed, and none is stored without approval."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.redaction import Redactor
from palaver.archiver.store.observation_table import OPTED_OUT
from palaver.core.conversation import Kind, Origin, Session, SessionKind, Speaker, Turn
from palaver.observe.extraction.preferences import Reason, decline, keep, preference_candidates
from palaver.observe.memory import MemoryCore
from palaver.observe.pipeline import observe_pending

from ...search.fake_embedder import FakeEmbedder
from ...search.history import History, Said

RULE = "From now on use tabs in all templates of the shop."


@pytest.fixture
def archive(tmp_path: Path) -> History:
    history = History(tmp_path)
    history.say(
        "one", Said(RULE, "From now on I never use `eval` in any file."), Said("Let's use Redis for this cache.")
    )
    observe_pending(history.store, lambda _done, _total: None)
    return history


def core_of(history: History) -> MemoryCore:
    return MemoryCore(history.store, history.generations, FakeEmbedder(), Redactor(bytes(32)))


def test_proposing_stores_nothing(archive: History) -> None:
    """Only lasting preferences of the user are proposed, and nothing is stored. Momentary preferences and agents' text
    are ignored.
    """
    (found,) = preference_candidates(archive.store)

    memory = found.memory
    assert (memory.content, memory.origin, memory.source) == (RULE, Origin.HUMAN, "conversation")
    assert (memory.namespace, found.line, found.path) == ("project:one", 1, archive.store.sources.load(1).archived)
    assert memory.metadata["quote"] in RULE
    assert archive.store.memories.all() == []
    assert list(preference_candidates(archive.store)) == [found]


def test_approval_stores_the_preference_once(archive: History) -> None:
    """An approved preference is stored with low confidence and never proposed again, even after its deletion."""
    core = core_of(archive)
    stored = keep(core, *preference_candidates(archive.store))
    assert (stored.memory.content, stored.stats.confidence, stored.protected) == (RULE, 0.3, False)
    archive.say("two", Said(RULE), project="one")
    observe_pending(archive.store, lambda _done, _total: None)

    assert list(preference_candidates(archive.store)) == []
    core.forget([stored.id])
    assert list(preference_candidates(archive.store)) == []


def test_an_approved_preference_is_in_the_project_of_its_session(tmp_path: Path) -> None:
    """The preference of a folder is in the context of its project, also if the folder is gone or shares its name."""
    history = History(tmp_path)
    history.say("one", Said("Go on"), project="shop", cwd=str(tmp_path / "elsewhere" / "shop"))
    history.say("two", Said(RULE), project="shop", cwd=str(tmp_path / "gone" / "shop"))
    core = core_of(history)
    [candidate] = preference_candidates(history.store)
    stored = keep(core, candidate)

    assert candidate.memory.namespace == stored.memory.namespace == "project:shop"
    assert stored.memory.namespace in core.projects.namesakes("shop")


def test_approval_reserves_the_namespace_of_an_existing_folder(tmp_path: Path) -> None:
    """A second project with the same name gets a number, and its name shows the preference."""
    history = History(tmp_path)
    for number, owner in enumerate(("ann", "bob")):
        (tmp_path / owner / "shop" / ".git").mkdir(parents=True)
        said = Said(RULE if owner == "bob" else "Go on", at=number + 1)
        history.say(owner, said, project="shop", cwd=str(tmp_path / owner / "shop"))
    core = core_of(history)
    stored = keep(core, *preference_candidates(history.store))

    assert stored.memory.namespace == core.projects.namespace(tmp_path / "bob" / "shop") == "project:shop-2"
    assert core.projects.namesakes("shop") == {"project:shop", "project:shop-2"}


def test_declined_preference_is_not_proposed_again(archive: History) -> None:
    """A declined preference cannot be found, but an undo restores it."""
    core = core_of(archive)
    [found] = preference_candidates(archive.store)
    decline(archive.store, found)

    assert list(preference_candidates(archive.store)) == []
    assert (core.page(), core.recall("tabs templates")) == ([], [])
    [stored] = archive.store.memories.all()
    assert core.undo([stored.id])[0].stored.memory.content == RULE


def test_every_prompt_of_a_main_session_is_read(tmp_path: Path) -> None:
    """A preference is proposed from a prompt without any observation, but not from a sub-agent's session."""
    history = History(tmp_path)
    history.say("one", Said(f"ok. {RULE}"))
    with history.store.transaction():
        history.store.sessions.save(Session("test", "agent", SessionKind.SUBAGENT, project="one"))
    history.say("two", Said(f"{RULE} Twice."))
    with history.store.transaction():
        history.store.sessions.save(Session("test", "two", SessionKind.SUBAGENT, project="two"))

    assert [each.memory.content for each in preference_candidates(history.store)] == [RULE]


def test_correction_is_proposed_if_two_sessions_contain_it(tmp_path: Path) -> None:
    """A correction is proposed once two sessions of a project contain it. The first wording is quoted."""
    history = History(tmp_path)
    history.say("one", Said("no, you should put helpers into core/text.py"), project="shop")
    history.say("one-again", Said("no, you should put helpers into core/text.py"), project="other")
    assert list(preference_candidates(history.store)) == []

    history.say("two", Said("You should put the helpers into core/text.py!"), project="shop")
    (found,) = preference_candidates(history.store)
    assert found.memory.content == "no, you should put helpers into core/text.py"
    assert (found.reason, found.memory.session_id) == (Reason.REPEATED, "one")


def test_template_of_a_program_is_no_repeated_correction(tmp_path: Path) -> None:
    """The same sentence in two prompts from one template is not proposed."""
    history = History(tmp_path)
    for name in ("one", "two"):
        history.say(
            name, Said(f"Review the branch and report findings. Do not change any code.\nScope: {name}"), project="a"
        )
    assert list(preference_candidates(history.store)) == []


def test_excluded_exchange_proposes_nothing(archive: History) -> None:
    """An exchange that the user excluded from extraction is not read for preferences."""
    with archive.store.transaction():
        for key in archive.store.items.all_keys():
            archive.store.observations.replace(key, 1, [], OPTED_OUT)
    assert list(preference_candidates(archive.store)) == []


@pytest.mark.parametrize("file", ["/shop/memory/prices.md", "/shop/AGENTS.md"])
def test_notes_of_agents_come_last(tmp_path: Path, file: str) -> None:
    """Rules in memory files of agents are proposed after the user's sentences, those in instruction files never."""
    history = History(tmp_path)
    note = f"## Rules\n\n- {RULE}\n- Never round a price before the total.\n\n## Gotchas\n\n- The cache drops cents.\n"
    (key,) = history.say("one", Said(RULE, "Noted."))
    exchange = history.store.exchanges.load([key])[key].exchange
    call = Turn(2, Speaker.ASSISTANT, Kind.CALL, f"Write: {file}\n{note}", tool="Write", call="c")
    result = Turn(2, Speaker.TOOL, Kind.RESULT, "", tool="Write", call="c", writes=(file,))
    with history.store.transaction():
        history.store.exchanges.replace(1, 1, 0, [replace(exchange, turns=(*exchange.turns, call, result))])
    history.say("two", Said("From now on write the tests first."), project="one")
    observe_pending(history.store, lambda _done, _total: None)

    found = [
        (each.memory.content, each.memory.type, each.memory.origin) for each in preference_candidates(history.store)
    ]

    stated = [(RULE, "preference", Origin.HUMAN), ("From now on write the tests first.", "preference", Origin.HUMAN)]
    noted = [
        ("Never round a price before the total.", "convention", Origin.ASSISTANT),
        ("The cache drops cents.", "issue", Origin.ASSISTANT),
    ]
    assert found == [*stated, *(noted if "memory" in file else [])]


def test_rule_is_proposed_if_the_agent_acknowledged_it(tmp_path: Path) -> None:
    """A sentence that is only worded as a rule is proposed after a promise to follow it."""
    history = History(tmp_path)
    rule = "Always run `make lint` before you commit."
    history.say("one", Said(rule, "The lint run found two problems."))
    assert list(preference_candidates(history.store)) == []

    history.say("two", Said(rule, "Understood, I'll always run it first."), project="shop")
    (found,) = preference_candidates(history.store)
    assert (found.memory.content, found.reason) == (rule, Reason.ACKNOWLEDGED)
