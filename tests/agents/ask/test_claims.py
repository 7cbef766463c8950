"""Claims are complete sentences with exact lines."""

from msgspec.structs import replace

from palaver.agents.ask.citation_check import claims_of
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.core.results import Detail
from palaver.core.text import is_statement, sentences_of

from ...cases import for_each

DETAIL = Detail(
    "obs-1",
    "observation",
    Observation(
        ObservationType.BUG_FIX,
        "Fix the clock",
        narrative="Asked: “The clock is late. Why is that?” Changed clock.py. The zone of the station was ignored.",
        facts=("clock.py: Compare instants in **UTC** only", "All 12 tests pass", "The result shows:"),
        evidence=(Evidence(9, 9, "Compare instants in UTC only"), Evidence(3, 3, "The clock is late.")),
    ),
    "tide-clock",
    "",
    "s",
    "",
    "claude-code/s.jsonl",
    2,
    12,
    100,
)


def test_claims_have_their_lines() -> None:
    """A claim cites the line of the evidence with its text, or else all lines of the entry."""
    assert [tuple(claim) for claim in claims_of(DETAIL)] == [
        ("clock.py: Compare instants in UTC only", 9, 9),
        ("Asked: “The clock is late. Why is that?”", 3, 3),
        ("The zone of the station was ignored.", 2, 12),
    ]


def test_requests_are_recognised() -> None:
    """A sentence that repeats the prompt is marked as a request."""
    assert [claim.is_request for claim in claims_of(DETAIL)] == [False, True, False]


def test_statistics_of_a_memory_are_no_claims() -> None:
    """The facts of a memory, which are its statistics, are left out."""
    memory = replace(DETAIL, kind="memory", observation=replace(DETAIL.observation, narrative="Prefer plain sqlite3."))

    assert [claim.text for claim in claims_of(memory)] == ["Prefer plain sqlite3."]


def test_code_blocks_are_no_sentences() -> None:
    """Code blocks, fragments and introductions of lists are left out."""
    text = (
        "The fix is in the store module.\n```\nthis is code in a block\n```\n- Use one connection for each thread\nSo:"
    )

    assert [*sentences_of(text)] == ["The fix is in the store module.", "Use one connection for each thread"]


@for_each(
    "text, states",
    [
        ("I'll run the tests of the importer now.", False),
        ("Now let me check the configuration of the server.", False),
        ("I’m going to read the schema of the database.", False),
        ("Should the importer skip the empty lines?", False),
        ("We're reading the schema of the database.", False),
        ("Well-formed JSON is required here.", True),
        ("Ill-formed UTF-8 is rejected.", True),
        ("Were existing rows kept, the import was slower.", True),
        ("The importer skips the empty lines.", True),
        ("I moved the check into the importer.", True),
        ("Asked: “Should the importer skip empty lines?”", True),
    ],
)
def test_intentions_and_questions_are_no_statements(text: str, states: bool) -> None:
    """A sentence that announces an action or asks a question states nothing. A prompt counts, because it is a quote."""
    assert is_statement(text) is states


def test_a_wrapped_paragraph_of_a_document_is_joined() -> None:
    """A sentence of a document can continue in the next line. Headings, lists and code blocks keep their lines."""
    text = (
        "# The kiln heats slowly\nThe potter heats the kiln\nuntil the cones bend.\n- Open it\n  after twelve hours.\n"
    )
    passage = replace(
        DETAIL, kind="document", observation=replace(DETAIL.observation, narrative=f"{text}```\nkiln on\n```\n")
    )

    assert [claim.text for claim in claims_of(passage)] == [
        "The kiln heats slowly",
        "The potter heats the kiln until the cones bend.",
        "Open it after twelve hours.",
    ]
