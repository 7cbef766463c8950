"""Tests for agents/resources.py."""

from msgspec.structs import replace

from palaver.agents.resources import list_resources, session_address

from ..templates.samples import hit


def test_sessions_with_the_same_id_are_not_listed() -> None:
    """The list has only addresses of exactly one session, in the given order."""
    sessions = [replace(hit(1), session_id=name) for name in ("b", "same", "a", "same")]
    assert [each.uri for each in list_resources(sessions)] == ["palaver://session/b", "palaver://session/a"]


def test_an_address_has_no_special_characters() -> None:
    """An ID with the separators of an address is quoted."""
    session = replace(hit(1), session_id="a/b?c#d e%ü")
    assert session_address(session) == "palaver://session/a%2Fb%3Fc%23d%20e%25%C3%BC"
