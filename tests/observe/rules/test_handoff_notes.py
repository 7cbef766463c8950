"""Notes of models about their own sessions are found by label, with quotes."""

import pytest

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.notes import NoteLabel, answer_notes, notes_of
from palaver.observe.rules.rule_extractor import closing_notes

from .exchange_script import Script

COMPACTED = """This session is being continued from a previous conversation.

Analysis:
1. The user asked for a footer.

Summary:
1. Primary Request and Intent:
   The user asked for a footer on every page of the shop. Details follow.

2. Files and Code Sections:
   - `footer.py`: draws the footer

7. Pending Tasks:
   - Task 1: Draw the footer - COMPLETED
   - Test the footer in the print view
   - No other pending tasks

8. Current Work:
   I was writing `test_footer.py` for the print view.

9. Optional Next Step:
   **Run** the tests of the print view with `pytest -k print`.
   > "run them all"

If you need specific details from before compaction, read the full transcript.
Continue with the last task.
"""


def texts(turn: Turn) -> dict[NoteLabel, list[str]]:
    found: dict[NoteLabel, list[str]] = {}
    for note in notes_of(turn):
        found.setdefault(note.label, []).append(note.text)
        assert note.evidence.quote in turn.text
    return found


def test_sections_of_a_compaction_summary() -> None:
    """Numbered sections give the request, pending tasks, current work and next step. Finished tasks are left out."""
    assert texts(Turn(6, Speaker.HOST, Kind.COMPACTION, COMPACTED)) == {
        NoteLabel.ASKED: ["The user asked for a footer on every page of the shop."],
        NoteLabel.OPEN: ["Test the footer in the print view"],
        NoteLabel.OUTCOME: ["I was writing test_footer.py for the print view."],
        NoteLabel.NEXT: ["Run the tests of the print view with pytest -k print."],
    }


def test_markdown_headings_of_a_compaction_summary() -> None:
    """Summaries with Markdown headings are read too."""
    text = (
        "## Goal\nA footer on every page\n## Progress\n### Done\n- Drew the footer\n## Key Decisions\n- Keep it short\n"
    )
    found = texts(Turn(6, Speaker.HOST, Kind.COMPACTION, text + "## Next Steps\n1. Test the print view\n"))

    assert found[NoteLabel.ASKED] == ["A footer on every page"]
    assert found[NoteLabel.NEXT] == ["Test the print view"]


@pytest.mark.parametrize("text", ["Conversation compacted", "compacted (auto, 120000 tokens before)", "[trimmed]"])
def test_markers_have_no_notes(text: str) -> None:
    """A marker of a compaction without a summary has no notes."""
    assert texts(Turn(6, Speaker.HOST, Kind.COMPACTION, text)) == {}


def test_recap() -> None:
    """A recap gives the outcome and the next action."""
    text = "Added a footer to all pages of the shop, tests pass. Next action: review the print view."

    assert texts(Turn(6, Speaker.HOST, Kind.RECAP, text)) == {
        NoteLabel.OUTCOME: ["Added a footer to all pages of the shop, tests pass."],
        NoteLabel.NEXT: ["review the print view."],
    }


def test_source_is_attributed() -> None:
    """Notes of compaction summaries and recaps name their source and line. Notes of answers do not."""
    recap = Turn(6, Speaker.HOST, Kind.RECAP, "Added a footer to all pages.")
    answer = Turn(7, Speaker.ASSISTANT, Kind.PROSE, "Next steps:\n- Review the print view\n")

    assert [note.attributed for note in notes_of(recap)] == [
        "Added a footer to all pages. (from the agent's recap, line 6)"
    ]
    assert [note.attributed for note in answer_notes(answer)] == ["Review the print view"]


@pytest.mark.parametrize("heading", ["下一步", "Nächste Schritte", "Próximos pasos", "次のステップ"])
def test_headings_in_other_languages(heading: str) -> None:
    """Headings for next steps are recognised in several languages."""
    turn = Turn(7, Speaker.ASSISTANT, Kind.PROSE, f"## {heading}\n\n- Review the print view\n")

    assert [note.label for note in answer_notes(turn)] == [NoteLabel.NEXT]


def test_the_newest_text_counts() -> None:
    """Work after a compaction replaces its pending tasks. A session that ends with one keeps them."""
    ended = Script().asked("Add a footer").compacted(COMPACTED)
    reply = "Added the footer to `print.py`, because the print view had none, and the tests of the print view pass."

    assert "Test the footer in the print view" in [note.text for note in closing_notes([ended.exchange])]
    assert closing_notes([ended.said(reply).exchange]) == []
