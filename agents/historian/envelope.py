"""Historian's replies: bare JSON objects, whole in the text too, and `success` where something was to be changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...core.errors import PalaverError
from ...observe.mnemonics import Problem
from ...templates.quote import clean, line
from ..toolset import Reply


def answered(fields: Mapping[str, Any], problems: Sequence[Problem] = ()) -> Reply:
    """A reply, with the files that could not be taken up where there are any."""
    untaken = [{"path": clean(each.path), "problem": line(each.reason)} for each in problems]
    told = {**fields, "problems": untaken} if untaken else dict(fields)
    return Reply(orjson.dumps(told).decode(), told)


def refused(error: PalaverError) -> Reply:
    """A failure: `{"success": false, "error": "…"}`, with a hint where there is one."""
    return answered({"success": False, **wrong(error)})


def wrong(error: PalaverError) -> dict[str, str]:
    """What an error says, and what to do about it."""
    hint = {"hint": line(error.hint)} if error.hint else {}
    return {"error": line(str(error)), **hint}
