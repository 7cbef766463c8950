"""Project folders of the conversations in Cursor's global database.

A conversation does not contain its project folder. The folder is in the list of conversations in the global database,
or in the database of a workspace, which lists the conversations of the workspace.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ....core.errors import SourceUnreadable
from ...files.lines import Record, decode
from ..foreign_database import ForeignDatabase, as_bytes
from ..json_values import first_string, json_file, listing, mapping, mappings, string

_HEADERS, _WORKSPACE_LIST = "composer.composerHeaders", "composer.composerData"
_HEADER_TABLE = "composerHeaders"
_OPENED = ("selectedComposerIds", "lastFocusedComposerIds")
_WORKSPACES, _DATABASE = "workspaceStorage", "state.vscdb"
_WORKSPACE_SUFFIX = ".code-workspace"
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")
_DRIVE = re.compile(r"/[A-Za-z]:")


def conversation_folders(path: Path) -> dict[str, str]:
    """Return the project folder of each conversation in a database, by the ID of the conversation.

    In the global database, each conversation has its own folder. Workspaces that cannot be read are ignored.
    """
    user = path.parent.parent
    found: dict[str, str] = {}
    for workspace in _workspaces(user / _WORKSPACES):
        folder = workspace_folder(workspace)
        if folder:
            # A conversation can be open in a workspace to which it does not belong.
            for listed, conversation in _conversations_of(workspace / _DATABASE):
                found[conversation] = folder if listed else found.get(conversation, folder)
    return found | dict(_registered(path))


def folder_called(name: str, user: Path) -> str:
    """Return the project folder after which Cursor named a folder of agent transcripts, such as `home-demo-shop`.

    The name has hyphens in place of other characters. It is compared with the folders of the workspaces in the editor's
    user data. The result is empty if no folder has this name.
    """
    try:
        changed = (user / _WORKSPACES).stat().st_mtime_ns
    except OSError:
        return ""
    return _folders_by_name(user, changed).get(name.strip("-").lower(), "")


@lru_cache(maxsize=4)
def _folders_by_name(user: Path, changed: int) -> dict[str, str]:  # noqa: ARG001 - the time makes the cache current
    folders = filter(None, map(workspace_folder, _workspaces(user / _WORKSPACES)))
    return {_NO_NAME.sub("-", folder).strip("-").lower(): folder for folder in folders}


def workspace_folder(workspace: Path) -> str:
    """Return the project folder of a workspace, from its file `workspace.json`, or an empty string.

    A workspace with several folders is named by its `.code-workspace` file.
    """
    found = json_file(workspace / "workspace.json")
    return _local_path(first_string(found, "folder", "workspace", "configuration"))


def is_readable(columns: Collection[str]) -> bool:
    """Return whether a table with these columns contains key-value pairs."""
    return "key" in columns and "value" in columns


def entry(database: ForeignDatabase, key: str) -> Record:
    """Return the JSON object that the editor stored under a key. The result is empty if there is none."""
    if not is_readable(database.columns("ItemTable")):
        return {}
    rows = database.rows(f"SELECT {as_bytes('value')} FROM ItemTable WHERE key = ?", (key,))  # noqa: S608
    return decoded(rows[0][0]) if rows else {}


def decoded(data: object) -> Record:
    """Return an object decoded from JSON, or an empty object if the JSON contains anything else."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    found = decode(raw) if isinstance(raw, bytes) else []
    return found[0] if isinstance(found, list) and found else {}


def _workspaces(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _conversations_of(path: Path) -> Iterator[tuple[bool, str]]:
    """Yield the IDs of the conversations that a workspace lists (True) or has opened (False)."""
    try:
        found = entry(ForeignDatabase(path), _WORKSPACE_LIST) if path.is_file() else {}
    except SourceUnreadable:
        return
    yield from ((True, string(each.get("composerId"))) for each in mappings(found.get("allComposers")))
    yield from ((False, string(name)) for field in _OPENED for name in listing(found.get(field)))


def _registered(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the ID and the folder of each conversation in the list of a database."""
    database = ForeignDatabase(path)
    headers = mappings(entry(database, _HEADERS).get("allComposers"))
    if "value" in database.columns(_HEADER_TABLE):
        rows = database.rows(f"SELECT {as_bytes('value')} FROM {_HEADER_TABLE}")  # noqa: S608
        headers += [decoded(value) for (value,) in rows]
    for header in headers:
        workspace = mapping(header.get("workspaceIdentifier"))
        uri = workspace.get("uri") or workspace.get("configPath")
        place = first_string(mapping(uri), "external", "fsPath", "path") or string(uri)
        if folder := _local_path(place):
            yield string(header.get("composerId")), folder


def _local_path(place: str) -> str:
    """Return the path in a URI such as `file:///home/demo/shop`. Return any other path unchanged."""
    path = unquote(urlsplit(place).path) if "://" in place else place
    path = path[1:] if _DRIVE.match(path) else path
    return str(PurePosixPath(path).with_suffix("")) if path.endswith(_WORKSPACE_SUFFIX) else path
