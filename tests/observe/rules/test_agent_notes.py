"""Rules and pitfalls in the notes of agents are recognised by their form."""

import pytest

from palaver.observe.rules.agent_notes import NoteKind, is_note, note_rules

from .exchange_script import CWD, Script


def rules(script: Script) -> list[str]:
    return [rule.text for rule in note_rules(script.exchange)]


def noted(text: str, path: str = "AGENTS.md") -> list[str]:
    return rules(Script().asked("note it").wrote(path, text))


@pytest.mark.parametrize(
    "rule",
    [
        "Run the linter before each commit.",
        "When you add a price, update the invoice template too.",
        "Prices must not be stored as floats.",
        "Templates: keep one blank line between blocks",
        "Never edit `prices.lock` by hand.",
    ],
)
def test_orders_and_constraints_are_rules(rule: str) -> None:
    """An order is a rule, also after a condition or a label. So is a sentence that demands or forbids something."""
    assert noted(f"# Shop\n\n- {rule}\n") == [rule.replace("`", "")]


@pytest.mark.parametrize(
    "text",
    [
        "- `src/` holds the modules of the shop",
        "- `make test` — run the tests of the shop",
        "- **Framework**: Flask with server-side rendering",
        "Test files are in `tests/`, one for each module.",
        "The script will:\n1. Check the branch of the release\n2. Create the tag of the release",
        "| Command | Purpose |\n|---|---|\n| deploy | Never run it on a Friday |",
        "```\nNever run this block of code.\n```",
    ],
)
def test_descriptions_are_no_rules(text: str) -> None:
    """A sentence that describes the project, a command or a list of effects is no rule."""
    assert noted(f"# Shop\n\n{text}\n") == []


def test_items_below_a_heading_of_rules_are_rules() -> None:
    """All items below a heading such as "Gotchas" count, also without an order."""
    script = Script().asked("note it").wrote("CLAUDE.md", "## Gotchas\n\n- The price cache silently drops cents.\n")
    (rule,) = note_rules(script.exchange)

    assert (rule.kind, rule.text) == (NoteKind.GOTCHA, "The price cache silently drops cents.")
    assert rule.evidence.quote in script.turns[1].text


def test_rule_includes_what_it_refers_to() -> None:
    """A rule with a pronoun includes the sentence before it, and an order includes the command or list below it."""
    text = """\
The label `open` stays on the order. Do not remove it by hand.

Before a release, ensure:
- All invoices are printed
- The cart is empty

After a checkout, always run the setup:
```bash
make setup   # once
```
"""
    assert noted(text) == [
        "The label open stays on the order. Do not remove it by hand.",
        "Before a release, ensure: All invoices are printed; The cart is empty",
        "After a checkout, always run the setup: `make setup`",
    ]


def test_only_added_lines_are_read() -> None:
    """An edit that repeats its context adds only the new lines, in a replacement and in a patch."""
    old = "- Use tabs in all templates."
    new = f"{old}\n- Use the price helper\n  in every invoice."
    assert rules(Script().asked("note it").replaced("AGENTS.md", old, new)) == [
        "Use the price helper in every invoice."
    ]

    patch = f"apply_patch: *** Begin Patch\n*** Update File: {CWD}/AGENTS.md\n@@\n {old}\n+- Use UTC in all tables."
    script = Script().asked("note it").wrote("AGENTS.md", "")
    script.turns[1] = type(script.turns[1])(2, script.turns[1].speaker, script.turns[1].kind, patch, call="call-1")
    assert rules(script) == ["Use UTC in all tables."]


def test_memory_file_is_one_rule() -> None:
    """A memory file is one rule, which its description states. Files about a project only contribute constraints."""
    body = "---\n\nThe user reviews each template. Use tabs in all templates.\n"
    described = "---\nname: tabs\ndescription: Tabs are wanted in templates\ntype: feedback\n"
    assert noted(described + body, ".claude/memory/tabs.md") == [
        "Tabs are wanted in templates. Use tabs in all templates."
    ]
    assert noted(described.replace("feedback", "project") + body, ".claude/memory/tabs.md") == []


def test_notes_of_several_agents_are_known() -> None:
    """Memory files, instructions and rule folders are notes. Other documents are not."""
    notes = [
        "memory/a.md",
        "GEMINI.md",
        ".cursor/rules/style.mdc",
        ".agents/scope.md",
        ".github/copilot-instructions.md",
    ]
    assert all(map(is_note, notes))
    assert not any(map(is_note, ["README.md", "docs/memory.md", ".agents/skills/deploy/SKILL.md"]))
