"""Only lasting preferences that the user typed are proposed, and none is stored without approval."""

from pathlib import Path

import pytest

from palaver.archiver.redaction import Redactor
from palaver.core.origin import Origin
from palaver.observe.extraction.preferences import (
    PreferenceCandidate,
    decline,
    is_typed,
    keep,
    preference_candidates,
    states_preference,
)
from palaver.observe.memory import MemoryCore
from palaver.observe.observe_pending import observe_pending

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


def test_declined_preference_is_not_proposed_again(archive: History) -> None:
    """A declined preference cannot be found, but an undo restores it."""
    core = core_of(archive)
    [found] = preference_candidates(archive.store)
    decline(archive.store, found)

    assert list(preference_candidates(archive.store)) == []
    assert (core.page(), core.recall("tabs templates")) == ([], [])
    [stored] = archive.store.memories.all()
    assert core.undo([stored.id])[0].stored.memory.content == RULE


def proposed(folder: Path, *prompts: str) -> list[PreferenceCandidate]:
    """Return the preferences that are proposed from these prompts."""
    history = History(folder)
    history.say("one", *map(Said, prompts))
    observe_pending(history.store, lambda _done, _total: None)
    return list(preference_candidates(history.store))


@pytest.mark.parametrize(
    "prompt",
    [
        "never mind, we'll look at it later",
        "Stop hook feedback:\n[npm test]: Always run the tests before you stop working.",
        "Stop hook feedback:\nAlways run the tests before you stop working.",
        "The bot wrote this, what do you think of it\n> Always validate the input of every handler.",
        'CodeRabbit says: "Good start. Always validate the input of every handler."',
        "⚠️ Potential issue\nAlways validate the input of every handler.",
        "## Guidelines\n- Always use conventional commits.\n- Never commit to main.",
        "Review comment:\nAlways validate the input of every handler.",
        "Never worked on my machine, the login that is.",
        "Please always use the staging database for this task.",
        "I prefer the second option because it is simpler.",
        "Here is what the linter says, fix it. " + "It found an unused import in the parser. " * 10 + "Always sort.",
    ],
)
def test_pasted_text_and_passing_remarks_are_not_proposed(tmp_path: Path, prompt: str) -> None:
    """Pasted, quoted and generated text and rules for one task are not proposed."""
    assert proposed(tmp_path, prompt) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Always write tests in the folder of the parser.",
        "never push to main without asking me",
        "please always answer in German",
        "I prefer pnpm over npm in all projects.",
        "In the future, please run the tests before you commit.",
        "use uv instead of pip from now on",
    ],
)
def test_lasting_rules_are_recognised(sentence: str) -> None:
    """Lasting rules are recognised in common phrasings."""
    assert states_preference(sentence)
    assert is_typed(f"Fix the login, it is slow. {sentence}\nThanks!")


def test_question_of_an_agent_is_not_proposed() -> None:
    """Only the answer to a question is the user's text."""
    assert not states_preference("Should I always use tabs? → Yes")
    assert not states_preference("Always use tabs?")
