"""Open items come from the end of a session, with their quotes."""

import pytest
from msgspec.structs import replace

from palaver.core.conversation import Exchange, Kind, Speaker, Turn
from palaver.core.observation import ending_of
from palaver.observe.rules.notes import NoteLabel
from palaver.observe.rules.rule_extractor import bad_end, closing_notes

from .exchange_script import Script


def listed(script: Script, *items: str) -> Script:
    text = "TodoWrite: " + "\n".join(items)
    line = len(script.turns) + 1
    script.turns.append(Turn(line, Speaker.ASSISTANT, Kind.CALL, text, tool="TodoWrite", call="t"))
    return script


def left(*scripts: Script, label: NoteLabel = NoteLabel.OPEN) -> list[str]:
    return [note.text for note in closing_notes(in_order(*scripts)) if note.label is label]


def in_order(*scripts: Script) -> list[Exchange]:
    return [replace(script.exchange, ordinal=place) for place, script in enumerate(scripts)]


def test_unfinished_items_of_the_last_list_are_open() -> None:
    """Only unfinished items of the last to-do list are open."""
    script = listed(Script().asked("Add a footer"), "[pending] Write the footer")
    script = listed(script, "[completed] Write the footer", "[in_progress] Test the footer", "[pending] Tell Ana")

    notes = closing_notes([script.exchange])

    assert [note.text for note in notes] == ["Test the footer", "Tell Ana"]
    assert [note.evidence.quote for note in notes] == ["[in_progress] Test the footer", "[pending] Tell Ana"]


def test_open_points_of_the_conclusion_are_open() -> None:
    """Remaining work named in the conclusion is open. Offers, results and unrelated changes are not."""
    script = Script().asked("Add a footer").said("The footer is there. The print view still needs a footer of its own.")

    assert left(script) == ["The print view still needs a footer of its own."]
    for reply in (
        "Should I do the follow-up?",
        "PR 7 now has the commits with the follow-up fixes.",
        "The remaining files have not been committed, they are unrelated to the footer.",
        "I added the task for the footer to our todo list.",
    ):
        assert left(Script().asked("Add it").said(reply)) == []


def test_next_steps_of_the_conclusion() -> None:
    """The items below a heading for next steps, and sentences that announce a next step, are next steps."""
    reply = "Added `footer.py`.\n\n**Next steps**\n\n- Add a footer to the print view\n- Update the style guide\n"
    script = Script().asked("Add a footer").said(reply)
    said = Script().asked("Add a footer").said("Added `footer.py`. The next step is to update the style guide.")

    assert left(script, label=NoteLabel.NEXT) == ["Add a footer to the print view", "Update the style guide"]
    assert left(said, label=NoteLabel.NEXT) == ["update the style guide."]


def test_sections_about_something_else_are_not_open() -> None:
    """A section of open items ends at the next heading."""
    reply = "## Not done\n\n- The print view has no footer\n\n## Verification\n\n- Ran the tests of the page\n"

    assert left(Script().asked("Add a footer").said(reply)) == ["The print view has no footer"]


def test_routine_exchanges_keep_earlier_items() -> None:
    """A commit after the work does not close its open items. New work does."""
    work = Script().asked("Add a footer").said("The print view still needs a footer of its own.")
    commit = Script().asked("commit this").said("Committed as `1a2b3c4`.")
    more = Script().asked("Add the footer to the print view").said("Added the footer to `print.py`.").edited("print.py")

    assert left(work, commit) == ["The print view still needs a footer of its own."]
    assert left(work, more) == []


def test_compaction_summary_without_a_reply() -> None:
    """A compaction summary in an exchange without replies is skipped if a later exchange concludes."""
    summarised = Script().asked("Cache the exchange rates").compacted("1. Pending Tasks:\n   - Add tests").ran("make")
    concluded = Script().asked("continue").said("The cache in `rates.py` is now cleared, because `refresh()` was late.")

    assert left(summarised, concluded) == []


def test_unfinished_states() -> None:
    """An unanswered question, a plan without approval, a failed check and an interruption are open."""
    asked = (
        Script()
        .asked("Add a footer")
        .said("There are two variants of the footer. Is the dark footer the default for all pages?")
    )
    planned = Script().asked("Add a footer to the page").planned("# Footer for all pages\n", rejected=True)
    failed = Script().asked("Add a footer").edited("footer.py").ran("pytest -q", "1 failed", failed=True)
    stopped = Script().asked("Add a footer to the page").edited("footer.py").injected("[Request interrupted by user]")

    assert left(asked) == ["Question to the user: Is the dark footer the default for all pages?"]
    assert left(planned) == ["The plan “Footer for all pages” was proposed, and not carried out in this session"]
    assert left(failed) == ["The last check, pytest -q, failed"]
    pushed = Script().asked("Publish it").ran("git push origin main", "error: failed to push", failed=True)
    assert left(pushed) == ["The last command, git push origin main, failed"]
    assert left(pushed.ran("git push origin main", "main -> main")) == []
    assert left(Script().asked("Read it").ran("cat notes.md", "No such file", failed=True)) == []
    assert left(stopped) == ["The user interrupted the work on “Add a footer to the page”"]


LEFT = {
    "Added the footer to `page.py`. Ready to commit.": "Ready to commit. Added the footer to page.py.",
    "The footer is in `page.py`.\n\nYou need to add these keys to it:\n- KEY": "You need to add these keys to it",
    "The old footer files are still in `tmp/`. Want me to delete them?": (
        "Question to the user: Want me to delete them? The old footer files are still in tmp/."
    ),
    "The commit would contain `page.py` and the print view. Go ahead?": (
        "Question to the user: Go ahead? The commit would contain page.py and the print view."
    ),
    "The footer is ready for a review whenever you like.": "The footer is ready for a review whenever you like.",
    "Let me check the footer of the print view:": "No final reply to “Add a footer”",
}


@pytest.mark.parametrize("reply", LEFT)
def test_forms_of_open_work(reply: str) -> None:
    """Work that waits for the user, and an announcement without a result, are open, with their subject."""
    assert left(Script().asked("Add a footer").edited("page.py").said(reply)) == [LEFT[reply]]


def test_later_results_close_open_work() -> None:
    """A commit outweighs an interruption after it, and a reported result a command that failed before it."""
    committed = (
        Script().asked("Commit it").ran('git commit -m "Add a footer"').injected("[Request interrupted by user]")
    )
    reported = Script().asked("Review it").ran("gh pr view 4", "not found", failed=True)

    assert left(committed.injected("[Request interrupted by user]")) == []
    assert left(reported.said("`page.py` builds the footer twice, because `render` calls `footer()` again.")) == []
    assert left(Script().asked("Explain it").said("It is in `page.py`. Let me know if you want more.")) == []


@pytest.mark.parametrize(
    "heading",
    [
        "## Loose ends",
        "### ⚠️ Not verified",
        "**A few caveats:**",
        "Known issues:",
        "## What I couldn't test",
        "## For later",
    ],
)
def test_headings_of_what_is_left(heading: str) -> None:
    """The items or the paragraph below a heading for what is left are open, up to the next heading or rule."""
    after = "\n\n---\n\nThe footer of the shop is blue."
    listed_below = f"Added it.\n\n{heading}\n\n- The print view has no footer\n- Let me know if you want one{after}"
    paragraph = f"Added it.\n\n{heading}\n\nThe print view has no footer.{after}"

    assert left(Script().asked("Add a footer").said(listed_below)) == ["The print view has no footer"]
    assert left(Script().asked("Add a footer").said(paragraph)) == ["The print view has no footer."]


def test_a_commit_that_is_not_pushed() -> None:
    """A commit that is not pushed is open with its hash and branch, until a later exchange pushes it."""
    script = Script().asked("Add a footer").said("Done — committed as `fbab1228` on `next` (not pushed).")
    pushed = Script().asked("ship it to the world").ran("git push origin next", "done").said("Pushed `next`.")

    assert left(script) == ["Not pushed: fbab1228 on next"]
    assert left(script, Script().asked("thanks").said("You are welcome.")) == ["Not pushed: fbab1228 on next"]
    assert left(script, pushed) == []


def test_a_refused_command_is_not_a_failed_one() -> None:
    """A command or check that the user refused did not fail."""
    for command in ("gh issue view 7340", "pytest -q"):
        script = Script().asked("Find the cause of issue 7340 in the footer").said("I will look at it now.")
        refused = script.ran(command, "The user doesn't want to proceed with this tool use.", failed=True)
        stopped = refused.injected("[Request interrupted by user for tool use]")

        assert left(stopped) == [
            "The user interrupted the work on “Find the cause of issue 7340 in the footer”",
            f"The user refused the last command, {command}",
        ]
        assert bad_end(closing_notes(in_order(stopped))) == "command refused"


def running(script: Script, command: str, tool: str = "Bash") -> Script:
    line = len(script.turns) + 1
    script.turns.append(Turn(line, Speaker.ASSISTANT, Kind.CALL, f"{tool}: {command}", tool=tool, call="r"))
    return script


def test_a_dialog_without_an_answer_is_a_question() -> None:
    """The first question of the dialog is open, without its options. An answered dialog is not."""
    script = Script().asked("commit").ran("git commit -m Footer", "hook failed", failed=True).said("The hook failed.")
    script = running(
        script,
        "The hook fails. Should I commit the footer of the print view? [Yes | No]\nPush? [Yes]",
        "AskUserQuestion",
    )

    assert left(script)[-1] == "Question to the user: Should I commit the footer of the print view?"
    assert ending_of([f"Open: {left(script)[-1]}"]) == "question to you"
    script.turns.append(Turn(9, Speaker.HUMAN, Kind.RESULT, "Yes", tool="AskUserQuestion", call="r"))
    assert not any("Question" in text for text in left(script))


def test_a_question_replaces_the_sentence_that_the_work_is_ready() -> None:
    """A sentence that names other work stays."""
    question = "Should I commit the footer of the print view?"
    other = "The footer is ready for a review whenever you like."
    for stated, kept in (("Ready to commit. The footer is in `page.py`.", []), (other, [other])):
        script = Script().asked("Add a footer").edited("page.py").said(f"{stated}\n\n{question}")
        assert left(script) == [f"Question to the user: {question}", *kept]


def test_a_session_without_a_final_reply() -> None:
    """A call without a result is open, with an earlier request if the last one names no subject."""
    work = Script().asked("Add a footer to the print view").edited("page.py").said("The footer is in `page.py`.")
    commit = running(Script().asked("commit this"), "git commit -m Footer")
    push = running(Script().asked("please push").said("I commit it first."), "git commit -m Footer")
    check = running(Script().asked("Check the links of the footer").said("The links are checked next."), "make links")
    stopped = Script().asked("commit").ran("git status").injected("[Request interrupted by user]")

    assert left(work, commit) == []
    assert left(work, push) == ["No final reply to “please push”, after the work on “Add a footer to the print view”"]
    assert left(work, check) == ["No final reply to “Check the links of the footer”"]
    assert left(work, stopped) == [
        "The user interrupted the work on “Commit”, after the work on “Add a footer to the print view”"
    ]


def test_questions() -> None:
    """A question comes before its context and keeps its mark. A question about the next task is not open."""
    long = "Should the totals of the footer " + "and of the header " * 8 + "be shown?"

    assert left(Script().asked("Fix it").said("Two pages differ. Should I commit the footer of the print view?")) == [
        "Question to the user: Should I commit the footer of the print view?"
    ]
    assert left(Script().asked("Fix it").said(long))[0].endswith(" …?")
    assert left(Script().asked("Fix it").said("I logged it. What's the task you'd like to work on?")) == []
