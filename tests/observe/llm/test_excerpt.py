"""Excerpts have a bounded length and contain the relevant passages."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.redaction import Redactor
from palaver.archiver.redaction.redactor import TranscriptRedactor
from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.observe.llm.extraction_request import EXCERPT_CHARS, is_worth_asking, shorten

TURNS = st.builds(
    Turn,
    st.integers(1, 50),
    st.sampled_from(Speaker),
    st.sampled_from(Kind),
    st.text(max_size=40).flatmap(lambda text: st.integers(0, 600).map(lambda times: text * times)),
    failed=st.booleans(),
    active=st.booleans(),
)


def exchange(*turns: Turn) -> Exchange:
    return Exchange(0, Span(1, 50, 0, 0), turns, None, None)


@given(st.lists(TURNS, max_size=40))
def test_an_excerpt_always_fits(turns: list[Turn]) -> None:
    """Excerpts of exchanges of any length fit the limit and count the omitted passages."""
    shown = shorten(exchange(*turns))

    assert sum(len(passage.text) for passage in shown.passages) <= EXCERPT_CHARS
    assert 0 <= shown.gap <= len(shown.passages)
    assert all(passage.turn in turns and passage.line == passage.turn.line for passage in shown.passages)
    assert [passage.turn for passage in shown.passages] == [
        turn for turn in turns if turn in [passage.turn for passage in shown.passages]
    ] or len(set(turns)) < len(turns)


def test_the_beginning_and_the_end_are_kept() -> None:
    """The request and the conclusion are kept, and passages in the middle are omitted and counted."""
    turns = [Turn(n, Speaker.ASSISTANT, Kind.PROSE, f"{n} " + "x" * 1_000) for n in range(1, 101)]

    shown = shorten(exchange(*turns))

    lines = [passage.line for passage in shown.passages]
    assert (lines[0], lines[-1]) == (1, 100)
    assert shown.left_out == 100 - len(lines) > 0
    assert lines[shown.gap] - lines[shown.gap - 1] == shown.left_out + 1


def test_calls_are_one_line_without_results() -> None:
    """Each tool call is one line that states success or failure.

    Results are omitted, except errors of failed calls and the user's answers.
    """
    shown = shorten(
        exchange(
            Turn(1, Speaker.ASSISTANT, Kind.CALL, "Bash: make\n  test" + "y" * 900, tool="Bash", call="a"),
            Turn(2, Speaker.TOOL, Kind.RESULT, "1 failed\n" + "z" * 9_000, call="a", failed=True),
            Turn(2, Speaker.TOOL, Kind.RESULT, "2 passed", call="c"),
            Turn(3, Speaker.HUMAN, Kind.RESULT, "Which port? → 8080", call="b"),
            Turn(4, Speaker.ASSISTANT, Kind.THINKING, "hm"),
            Turn(5, Speaker.HOST, Kind.INJECTED, "reminder"),
            Turn(6, Speaker.HOST, Kind.PROMPT, "Find the port."),
        )
    )

    assert [(passage.line, passage.voice) for passage in shown.passages] == [
        *((1, "call"), (2, "error"), (3, "human"), (6, "task"))
    ]
    assert shown.passages[1].text.startswith("1 failed")
    assert len(shown.passages[1].text) < 1_000
    assert all("2 passed" not in passage.text for passage in shown.passages)
    assert shown.passages[0].text.startswith("Bash: make test")
    assert shown.passages[0].text.endswith("[failed]")
    assert len(shown.passages[0].text) < 180


def test_errors_are_redacted() -> None:
    """The output of a failed call contains no secret, because archived text is redacted."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    failed = exchange(Turn(1, Speaker.TOOL, Kind.RESULT, f"push failed for {token}", call="a", failed=True))

    [redacted] = TranscriptRedactor(Redactor(b"0123456789abcdef")).exchanges([failed])

    [passage] = shorten(redacted).passages
    assert (passage.voice, passage.text[:15]) == ("error", "push failed for")
    assert token not in passage.text


def test_short_exchange_is_skipped() -> None:
    """A short exchange is skipped unless it changed a file."""
    short = exchange(Turn(1, Speaker.HUMAN, Kind.PROMPT, "go on"))
    wrote = exchange(Turn(1, Speaker.ASSISTANT, Kind.CALL, "Edit", writes=("/a",)))

    assert not is_worth_asking(short, shorten(short))
    assert is_worth_asking(wrote, shorten(wrote))
