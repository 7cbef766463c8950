"""What both Kimi products put into messages, as text."""

from ..files.lines import Record
from .json_values import listing, mapping, string, whole

_ENVELOPES = ("<system-reminder>", "<system>", "<notification", "<task-notification")


def text_of(content: object) -> str:
    """The text of a message's or a result's content; pictures and other media by their kind."""
    if isinstance(content, str):
        return content
    parts = listing(content) or [content]
    return "\n".join(filter(None, (part if isinstance(part, str) else _part(mapping(part)) for part in parts)))


def is_envelope(text: str) -> bool:
    """Whether the program put a text under the person's name."""
    return text.startswith(_ENVELOPES) and text.rstrip().endswith(">")


def usage_of(usage: Record) -> tuple[int, int]:
    """Tokens given to the model and made by it; one product writes the names together, the other with underscores."""
    counts = {name.replace("_", "").lower(): value for name, value in usage.items()}
    given = [counts.get(name) for name in ("inputother", "inputcacheread", "inputcachecreation")]
    return sum(map(whole, given)), whole(counts.get("output"))


def _part(part: Record) -> str:
    kind = string(part.get("type"))
    if kind == "think":
        return ""
    return string(part.get("text")) or (f"[{kind.removesuffix('_url')}]" if kind.endswith("_url") else "")
