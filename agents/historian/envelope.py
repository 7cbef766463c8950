"""Historian's replies: bare JSON objects, with `success` where something was to be changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...observe.mnemonics import Problem
from ...templates.quote import clean, line
from ..envelope import whole
from ..toolset import Reply


def answered(fields: Mapping[str, Any], problems: Sequence[Problem] = ()) -> Reply:
    """A reply, with the files that could not be taken up where there are any."""
    untaken = [{"path": clean(each.path), "problem": line(each.reason)} for each in problems]
    told = {**fields, "problems": untaken} if untaken else fields
    return whole(told)
