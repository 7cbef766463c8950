"""Functions that the formats of Kimi Code and Kimi CLI share."""

from pathlib import Path

from ..files.lines import Record
from .json_values import count_of, first_string, joined_text, json_file, string, total
from .record_events import usage

_ENVELOPES = ("<system-reminder>", "<system>", "<notification", "<task-notification")


def session_folder(state: Path) -> str:
    """Return the working folder of a session from its `state.json`.

    The result is empty if the file is missing or damaged.
    """
    found = json_file(state)
    return first_string(found, "cwd", "workDir", "work_dir")


def text_of(content: object) -> str:
    """Return the text of a message or a result, with pictures and other media replaced by their media type."""
    return joined_text(content, _part_text)


def is_envelope(text: str) -> bool:
    """Return whether the program wrote a text that is recorded with the role `user`."""
    return text.startswith(_ENVELOPES) and text.rstrip().endswith(">")


def step_usage(step: str, counts: Record) -> str:
    """Return the token usage of a step, as the value of a `Fact.USAGE` note.

    The fields of `counts` can have names in the style of Kimi Code (`inputOther`) or of Kimi CLI (`input_other`).
    """
    normalised = {name.replace("_", "").lower(): value for name, value in counts.items()}
    tokens_in = total(normalised, "inputother", "inputcacheread", "inputcachecreation")
    return usage(step, tokens_in, count_of(normalised.get("output")))


def _part_text(part: Record) -> str:
    kind = string(part.get("type"))
    if kind == "think":
        return ""
    return string(part.get("text")) or (f"[{kind.removesuffix('_url')}]" if kind.endswith("_url") else "")
