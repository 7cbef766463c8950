"""Hook before a shell command or an edit: one line about earlier failures of this command or after such edits."""

from typing import Final

from ...core.injection import HookEvent
from ...observe.commands.known_costs import FAILED_SHARE_MIN, SIMILARITY_MIN, command_cost, file_cost, latest_sessions
from .hook_answer import BUDGETS, HookAnswer, HookPlace, QuotedLine, quoted
from .hook_call import HookCall

_LEAD: Final = "From past sessions of this project (details: `palaver show ID`)."


def tool_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return one line about a known failure of the command, or of checks that followed edits of the file.

    Each line is shown once per session.
    """
    root = str(place.root)
    sessions = latest_sessions(place.store, place.namespace) if call.command or call.file else []
    if call.command:
        found, least = command_cost(place.store, sessions, call.command, root), SIMILARITY_MIN
    elif call.file:
        found, least = file_cost(place.store, sessions, call.file, root), FAILED_SHARE_MIN
    else:
        return HookAnswer()
    if found is None or found.strength < least or found.id in place.shown:
        return HookAnswer()
    return quoted(place, _LEAD, [QuotedLine(found.id, found.at, found.text)], BUDGETS[HookEvent.TOOL])
