"""Do the preferences that a person stated become memories once, and only theirs?"""

from pathlib import Path

import pytest

from palaver.archiver.redaction import Redactor
from palaver.core.origin import Origin
from palaver.observe.candidates import propose
from palaver.observe.memory import MemoryCore
from palaver.observe.stage import observe_pending

from ..search.fake_embedder import FakeEmbedder
from ..search.history import History, Said

RULE = "From now on use tabs in all templates of the shop."


@pytest.fixture
def told(tmp_path: Path) -> History:
    history = History(tmp_path)
    history.say(
        "one", Said(RULE, "From now on I never use `eval` in any file."), Said("Let's use Redis for this cache.")
    )
    observe_pending(history.store, lambda _done, _total: None)
    return history


def core_of(told: History) -> MemoryCore:
    return MemoryCore(told.store, told.generations, FakeEmbedder(), Redactor(bytes(32)))


def test_a_lasting_preference_is_offered_with_low_confidence(told: History) -> None:
    """What the person laid down for good is held as their word; what holds for once and what the agent said is not."""
    (held,) = propose(core_of(told), told.store)

    memory = held.memory
    assert (memory.content, memory.origin, memory.source) == (RULE, Origin.HUMAN, "conversation")
    assert memory.namespace == "project:one"
    assert memory.metadata["quote"] in RULE
    assert (held.standing.confidence, held.golden) == (0.3, False)


def test_it_is_never_offered_twice(told: History) -> None:
    """Neither asking again, nor stating it again, nor having forgotten it brings it a second time."""
    core = core_of(told)
    (held,) = propose(core, told.store)
    told.say("two", Said(RULE), project="one")
    observe_pending(told.store, lambda _done, _total: None)

    assert propose(core, told.store) == []
    core.memories.forget([held.id])
    assert propose(core, told.store) == []
