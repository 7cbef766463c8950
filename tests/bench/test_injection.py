"""The injection benchmark counts a line once a session, and shows the baseline beside it."""

from bench.injection import Line, Replayed, summary


def test_a_line_counts_once_a_session_and_threshold() -> None:
    """Of several calls with the same line in a session, the first that is strong enough counts."""
    line = Line("s1", "obs-1", 0.0, bears=True, base=False, section="Decisions")
    found = Replayed(starts={"s1": (500, [line]), "s4": (0, [])})
    found.all_commands.update([True, False, False, False])
    found.commands = [
        Line("s1", "obs-1", 0.5, bears=False, base=False),
        Line("s1", "obs-1", 1.0, bears=True, base=True),
        Line("s2", "obs-1", 0.5, bears=True, base=False),
    ]

    text = summary(found).partition("### Before an edit")[0]

    assert "All 4 commands: 25 % failed." in text
    rows = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
        for row in text.splitlines()
        if "|" in row
    }
    assert rows["0.5"] == ["2", "2", "0 %", "50 %"]
    assert rows["lines that bear on the session"] == ["100 %", "-", "100 %"]
    assert rows["silent sessions"] == ["0 %", "100 %", "50 %"]
    assert rows["Decisions"] == ["1", "100 %", "0 %"]
