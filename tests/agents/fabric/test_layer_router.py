"""Tests for agents/fabric/layer_tools.py."""

from palaver.agents.fabric.layer_tools import Layer, route

from ...cases import for_each


@for_each(
    "memory_type, tags, layer, ttl, expected",
    [
        ("code_pattern", ["temp"], 2, 60.0, (2, "requested layer", 1.0)),
        ("code_pattern", ["Global", "TEMP"], None, None, (1, "tag temp", 0.95)),
        ("decision", ["universal", "local"], None, 5.0, (3, "tag universal", 0.95)),
        ("convention", [" Project "], None, None, (2, "tag project", 0.95)),
        ("convention", ["other"], None, 5.0, (1, "time-to-live", 0.9)),
        ("scratchpad", [], None, None, (1, "type scratchpad", 0.95)),
        ("code_pattern", [], None, None, (3, "type code_pattern", 0.9)),
        ("convention", [], None, None, (3, "type convention", 0.9)),
        ("decision", [], None, None, (2, "type decision", 0.85)),
        ("bug_fix", [], None, None, (2, "type bug_fix", 0.85)),
        ("relationship", [], None, None, (3, "type relationship", 0.85)),
        ("fact", [], None, None, (2, "default", 0.6)),
    ],
)
def test_the_first_matching_rule_decides(
    memory_type: str, tags: list[str], layer: Layer | None, ttl: float | None, expected: tuple[int, str, float]
) -> None:
    """A requested layer wins over tags, tags over the time-to-live, and this over the type."""
    found = route(memory_type, tags, layer, ttl)

    assert (found.layer, found.reason, found.confidence) == expected
