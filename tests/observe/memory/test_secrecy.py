"""Is there no way for a secret into what is held to be true?"""

from palaver.archiver.privacy.disclosures import kinds_of, secrets_in
from palaver.core.memory import HeldMemory, Memory, Relation
from palaver.observe.memory import Revision

from .holding import Holding

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SAID = f"The deploy key is {TOKEN} until May."


def nowhere(holding: Holding) -> bool:
    """Whether no file of the store holds the token."""
    files = [path for path in holding.folder.rglob("*") if path.is_file()]
    assert files
    return not any(TOKEN.encode() in path.read_bytes() for path in files)


def test_every_part_of_a_memory_is_without_secrets(holding: Holding) -> None:
    """Content, title, tags, metadata and what names its source are redacted; a name can make a value a secret."""
    held = holding.hold(
        SAID,
        title=f"Key {TOKEN}",
        tags=("deploy", f"was {TOKEN}"),
        metadata={"by": [{"token": TOKEN}], "password": "vR7#kq2!xW9p", "count": 2},
        source=TOKEN,
        session_id=TOKEN,
    )

    memory = held.memory
    assert memory.content.startswith("The deploy key is [secret:github-pat:")
    assert memory.content.endswith("] until May.")
    assert memory.metadata["count"] == 2
    assert "vR7#kq2!xW9p" not in str(memory)
    assert TOKEN not in str(memory)
    assert nowhere(holding)
    assert kinds_of(memory)[0] == "github-pat"


def test_an_edit_is_without_secrets(holding: Holding) -> None:
    """What an edit says is redacted too, in the history as well, and saying the same secret again is no edit."""
    held = holding.hold("The deploy key is in the vault.")
    after = holding.core.memories.revise(held.id, Revision(SAID, title=TOKEN, tags=(TOKEN,), metadata={"key": TOKEN}))
    again = holding.core.memories.revise(held.id, Revision(SAID))

    assert again == after
    assert "[secret:github-pat:" in after.memory.content
    assert nowhere(holding)


def test_the_same_secret_told_twice_is_held_once(holding: Holding) -> None:
    """Duplicates are found by what is stored, so the second telling is known without keeping the secret."""
    first = holding.hold(SAID)

    again = holding.remember(SAID)
    assert (again.duplicate, again.held.id) == (True, first.id)


def test_reasons_and_contexts_are_without_secrets(holding: Holding) -> None:
    """What is said about a memory, when it is tried, judged or related, is redacted like the memory."""
    one, other = holding.hold("Deploy on Mondays."), holding.hold("The kettle is brass.")
    holding.core.learning.apply(one.id, SAID, TOKEN)
    holding.core.learning.outcome(one.id, success=False, error=SAID, session_id=TOKEN)
    holding.core.graph.relate(one.id, other.id, Relation.CAUSED_BY, reason=SAID)

    assert nowhere(holding)


def test_the_report_counts_what_was_taken_out_of_memories(holding: Holding) -> None:
    """`palaver redact` names the memories and the kinds."""
    held: HeldMemory = holding.hold(SAID, title=f"Key {TOKEN}")

    told = secrets_in(holding.store)
    assert told.memories == {held.id: {"github-pat": 2}}
    assert told.kinds == {"github-pat": (1, 2)}


def test_what_holds_no_secret_stays_as_it_is(holding: Holding) -> None:
    """Ordinary words, tags and metadata are not touched."""
    said = Memory("Tabs in templates.", title="Tabs", tags=("style",), metadata={"line": 3, "quote": "use tabs"})

    assert holding.core.remembering.remember(said).held.memory == said
