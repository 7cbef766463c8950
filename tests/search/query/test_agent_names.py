"""Tests of search/query/tokenizer.py."""

import pytest

from palaver.core.errors import InvalidInput
from palaver.search.query.tokenizer import check_agents


@pytest.mark.parametrize("name", ["pi", "Claude-Code", "my-own-agent"])
def test_supported_and_archived_agents_are_known(name: str) -> None:
    """Every supported agent is known, also without entries, and so is an agent with entries."""
    check_agents([name], ["my-own-agent"])


@pytest.mark.parametrize(("name", "near"), [("pie", "pi"), ("claude", "claude-code"), ("codx", "codex")])
def test_an_unknown_agent_is_an_error_with_a_suggestion(name: str, near: str) -> None:
    """The error names the most similar agent and lists all of them."""
    with pytest.raises(InvalidInput, match=f"Unknown agent: {name}") as refused:
        check_agents(["codex", name], [])
    assert refused.value.hint.startswith(f"Did you mean {near}")
    assert "gemini" in refused.value.hint


def test_a_name_without_similar_names_has_no_suggestion() -> None:
    """Without a similar name, the error only lists the agents."""
    with pytest.raises(InvalidInput) as refused:
        check_agents(["zzzzqqqq"], [])
    assert refused.value.hint.startswith("Use one of: claude-code, ")
