"""Build JSON replies. The text is the whole object, so clients that read only text lose nothing."""

from collections.abc import Mapping
from typing import Any

import orjson

from ..core.errors import PalaverError
from ..templates.quote import line
from .toolset import Reply


def whole(fields: Mapping[str, Any]) -> Reply:
    """Return a reply whose text and data are the same JSON object."""
    told = dict(fields)
    return Reply(orjson.dumps(told).decode(), told)


def wrong(error: PalaverError) -> dict[str, str]:
    """What an error says as `error`, and what to do about it as `hint` where that is known."""
    hint = {"hint": line(error.hint)} if error.hint else {}
    return {"error": line(str(error)), **hint}


def refused(error: PalaverError) -> Reply:
    """A failure: `{"success": false, "error": "…"}`, with a hint where there is one."""
    return whole({"success": False, **wrong(error)})
