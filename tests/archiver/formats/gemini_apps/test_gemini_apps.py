"""Gemini Apps: activities in an export of Google Takeout."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.gemini_apps import GeminiApps
from palaver.core.conversation import Kind, Speaker

from ..container_files import contents, turns

KNOWN = GeminiApps()


def activity(title: str, time: str, *answers: str, conversation: str = "", **fields: Any) -> dict[str, Any]:
    """Return one activity."""
    links = [{"name": "Chat", "url": f"https://gemini.google.com/app/{conversation}"}] if conversation else []
    items = [{"html": answer} for answer in answers]
    about = {"header": "Gemini Apps", "products": ["Gemini Apps"], "activityControls": ["Gemini Apps Activity"]}
    return {**about, "title": title, "time": time, "safeHtmlItem": items, "details": links, **fields}


ACTIVITIES = [
    activity("Used an Assistant feature", "2026-03-01T12:00:00.000Z"),
    activity("Prompted And then?", "2026-03-01T11:00:00.000Z", "<p>Test it.</p>"),
    activity("Prompted Fix the login", "2026-03-01T10:00:00.000Z", "<p>I <b>look</b>.</p><ul><li>a &lt; b</li></ul>"),
]
TURNS = [
    (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
    (Speaker.ASSISTANT, Kind.PROSE, "I look.\n\n- a < b"),
    (Speaker.HUMAN, Kind.PROMPT, "And then?"),
    (Speaker.ASSISTANT, Kind.PROSE, "Test it."),
]


def exported(folder: Path, activities: Any, *, zipped: bool = False) -> Path:
    """Write an export, and return its path."""
    path = folder / "MyActivity.json"
    path.write_text(json.dumps(activities, indent=2))
    if not zipped:
        return path
    with zipfile.ZipFile(folder / "takeout.zip", "w") as archive:
        archive.writestr("Takeout/My Activity/Search/MyActivity.json", json.dumps([{"header": "Search", "title": "x"}]))
        archive.write(path, "Takeout/My Activity/Gemini Apps/MyActivity.json")
    return folder / "takeout.zip"


@pytest.mark.parametrize("zipped", [False, True])
def test_the_activities_of_a_day_are_a_session(tmp_path: Path, zipped: bool) -> None:
    """An export is ordered from the newest activity to the oldest. A session is ordered by time."""
    path = exported(tmp_path, ACTIVITIES, zipped=zipped)

    assert KNOWN.is_container(path)
    assert turns(KNOWN, path) == {"conversations/day-2026-03-01.jsonl": TURNS}


def test_a_link_names_the_conversation(tmp_path: Path) -> None:
    """Later exports have links, so a conversation can have several days."""
    one, two = "aa00000000000001", "aa00000000000002"
    path = exported(
        tmp_path,
        [
            activity("Prompted And then?", "2026-03-02T10:00:00.000Z", conversation=one),
            activity("Prompted Hello", "2026-03-01T11:00:00.000Z", conversation=two),
            activity("Prompted Fix the login", "2026-03-01T10:00:00.000Z", conversation=one),
        ],
    )

    assert {name: [text for _, _, text in found] for name, found in turns(KNOWN, path).items()} == {
        f"conversations/{one}.jsonl": ["Fix the login", "And then?"],
        f"conversations/{two}.jsonl": ["Hello"],
    }


def test_an_answer_that_was_generated_again_follows_the_first(tmp_path: Path) -> None:
    """Both answers are kept. Attachments are named."""
    made = activity("Prompted See", "2026-03-01T10:00:00.000Z", "<p>One</p>", "<p>Two</p>", attachedFiles=["a.pdf"])

    assert list(turns(KNOWN, exported(tmp_path, [made])).values()) == [
        [
            (Speaker.HUMAN, Kind.PROMPT, "See\n[file a.pdf]"),
            (Speaker.ASSISTANT, Kind.PROSE, "One"),
            (Speaker.ASSISTANT, Kind.PROSE, "Two"),
        ]
    ]


def test_a_later_export_has_the_same_lines_for_the_same_activities(tmp_path: Path) -> None:
    """The ID of an activity is made of its time and its title, because it has none."""
    path = exported(tmp_path, ACTIVITIES)
    [before] = contents(KNOWN, path).values()
    exported(tmp_path, [activity("Prompted Last", "2026-03-01T13:00:00.000Z"), *ACTIVITIES])
    [after] = contents(KNOWN, path).values()

    assert after.startswith(before)
    assert len(after) > len(before)


def test_activities_of_other_products_are_no_container(tmp_path: Path) -> None:
    """Every product of Google has a file of this name."""
    assert not KNOWN.is_container(exported(tmp_path, [{"header": "Search", "activityControls": ["x"], "title": "y"}]))
