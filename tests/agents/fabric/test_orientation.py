"""Tests of orientation: the gap since the last visit, and what was remembered meanwhile."""

from .client import DAY, Agent


def test_the_gap_is_that_of_the_project(fabric: Agent) -> None:
    """The second visit has the gap and the memories of this project that were added meanwhile."""
    assert fabric.call("orient")["offlineGap"] is None
    other = str(fabric.folder / "other")
    fabric.store("Deploy with systemd")
    fabric.store("Paint it blue", metadata={"projectPath": other})
    fabric.shift = 2 * DAY
    reply = fabric.call("orient", timezone="Asia/Tokyo")
    gap = reply["offlineGap"]

    assert (gap["memoriesAdded"], gap["durationHuman"]) == (1, "2 days")
    assert 0 <= gap["durationMs"] - 2 * DAY < 60_000
    assert [each["content"] for each in reply["recentMemories"]] == ["Deploy with systemd"]
    assert "The last visit was 2 days ago; 1 memory was added since." in reply["summary"]
    assert fabric.call("orient")["summary"].endswith("You were just here.")
    assert fabric.call("orient", projectPath=other)["offlineGap"] is None


def test_invalid_expressions_and_zones_are_errors(fabric: Agent) -> None:
    """An error names the parameter's valid values, and counts as no visit."""
    assert fabric.error("orient", timezone="Mars/Olympus") == "Unknown time zone: Mars/Olympus"
    assert fabric.error("orient", expression="soonish") == "Invalid date format"
    assert fabric.error("orient", also=["Europe/London", "x"]) == "Unknown time zone: x"
    assert fabric.error("orient", projectPath="a\0b").startswith("Invalid projectPath")
    assert fabric.call("orient")["offlineGap"] is None
