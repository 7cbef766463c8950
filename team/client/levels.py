"""Choice of what is shared: a level for a project, and single memories."""

from collections.abc import Iterator
from pathlib import Path, PurePath

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.store import Store
from ...archiver.store.team_table import Choices
from ...core import ids
from ...core.conversation import Session, SessionKind
from ...core.errors import InvalidInput, TeamRefused, UnknownIds
from ...core.home import is_in_project, is_windows_path
from ...observe.archive import Archive
from ...search.query.tokenizer import unknown_project
from ..protocol import Level
from .membership import connect, joined
from .offers import Offers
from .places import identities


class SharedLevel(Struct, frozen=True):
    """Level of a project or of a memory.

    Attributes:
        sessions: Number of archived sessions of the project, without those of sub-agents.
        stays: Number of exchanges of the project that stay on this machine at this level, by reason.
    """

    name: str
    level: str
    sessions: int = 0
    stays: dict[str, int] = field(default_factory=dict[str, int])


class LevelChange(Struct, frozen=True):
    """Change of the level of a project or a memory that is not stored yet."""

    shared: SharedLevel
    identity: str = ""
    older: str = ""
    """Identity that the project had before, or an empty text. See `places.identities`."""
    memory: int | None = None

    def save(self, store: Store) -> None:
        """Store the change. The caller opens the transaction."""
        level = "" if self.shared.level == Level.PRIVATE else self.shared.level
        if self.memory is not None:
            store.team.choose_memory(self.memory, shared=bool(level))
            return
        if self.older:
            store.team.set_level(self.older, self.shared.name, "")
        store.team.set_level(self.identity, self.shared.name, level)

    def is_shared(self, choices: Choices) -> bool:
        """Return whether the project or the memory has a level among the choices."""
        if self.memory is not None:
            return self.memory in choices.memories
        return not choices.levels.keys().isdisjoint((self.identity, self.older))

    def saved(self, archive: Archive) -> SharedLevel:
        """Store the change in a transaction, and return the level with what stays on this machine."""
        with archive.store.transaction():
            self.save(archive.store)
        if self.memory is not None:
            return self.shared
        return replace(self.shared, stays=Offers(archive, joined(archive.store)).stays(self.identity))

    def applied(self, choices: Choices) -> Choices:
        """Return the choices with this change, for a preview."""
        if self.memory is not None:
            return choices._replace(memories=choices.memories | {self.memory})
        return choices._replace(levels={**choices.levels, self.identity: self.shared.level})


def change_of(archive: Archive, name: str, folder: PurePath | None, level: Level) -> LevelChange:
    """Return the change of the level of a memory, of the project in a folder, or of the project with a name.

    Raises:
        InvalidInput: This machine belongs to no team, the settings name the project as private, several projects have
            this name, or the memory cannot leave this machine.
        UnknownIds: There is no such memory.
        UnknownProject: There is no such project.
    """
    joined(archive.store)
    key = ids.key(name, "memory") if folder is None and ids.canonical(name) else None
    if key is not None:
        return _memory_change(archive, key, level)
    identity, older, shown = _project(archive.store, name, folder)
    path = identity if identity.startswith("/") or is_windows_path(identity) else older
    if level is not Level.PRIVATE and is_in_project(archive.config.private_projects, shown, *filter(None, (path,))):
        raise InvalidInput(
            f"{shown} is in private_projects, so nothing of it is shared",
            hint=f"To share it, first remove it from private_projects in {archive.home.config}.",
        )
    sessions = _sessions_by_identity(archive.store).get(identity, 0)
    return LevelChange(SharedLevel(shown, level, sessions), identity, older)


def check_full_copies(archive: Archive) -> None:
    """Check that the server of the team stores full copies.

    Raises:
        TeamRefused: The server stores none.
        TeamUnreachable: The server did not answer.
    """
    membership = joined(archive.store)
    with connect(archive.home, membership) as server:
        if not server.hello().raw:
            raise TeamRefused(
                f"The server of the team {membership.team_name} stores no full copies",
                hint="Ask your administrator to start it with --raw-store, or use --level team.",
            )


def _memory_change(archive: Archive, key: int, level: Level) -> LevelChange:
    if level in {Level.METRICS, Level.RAW}:
        what = "metrics" if level is Level.METRICS else "full copy"
        raise InvalidInput(f"A memory has no {what}", hint="Use --level team, or leave out --level.")
    stored = archive.store.memories.load([key]).get(key)
    if stored is None:
        raise UnknownIds([ids.show("memory", key)])
    reason = Offers(archive, joined(archive.store)).why_memory_stays(stored)
    if reason and level is not Level.PRIVATE:
        raise InvalidInput(f"{stored.id} cannot be shared: {reason}", hint="Choose another memory.")
    return LevelChange(SharedLevel(stored.id, level), memory=key)


def _project(store: Store, name: str, folder: PurePath | None) -> tuple[str, str, str]:
    """Return the identity, the earlier identity and the name of a project.

    It has sessions, a level, or an existing folder.
    """
    recorded, levels = store.team.folders(), store.team.level_names()
    if folder is not None:
        identity, older = identities(str(folder), name, recorded)
        archived = {identities(cwd, project, recorded)[0] for project, cwd in _folders(store)}
        if identity not in levels and identity not in archived and not Path(folder).is_dir():
            raise unknown_project(store, str(folder))
        return identity, older, Path(identity).name or name
    projects = {identity: ("", identity) for identity, (label, _) in levels.items() if label == name}
    for project, cwd in sorted(_folders(store)):
        if project == name:
            identity, older = identities(cwd, project, recorded)
            projects.pop(older, None)
            projects[identity] = older, cwd or project
    if not projects:
        raise unknown_project(store, name)
    if len(projects) > 1:
        folders = sorted(shown for _, shown in projects.values())
        raise InvalidInput(f"{len(projects)} projects are named {name}", hint=f"Give a folder: {', '.join(folders)}")
    [(identity, (older, _))] = projects.items()
    return identity, older, name


def shared_levels(store: Store, offers: Offers) -> Iterator[SharedLevel]:
    """Yield the projects of which more than nothing is shared, by name."""
    sessions = _sessions_by_identity(store)
    for identity, (name, level) in store.team.level_names().items():
        yield SharedLevel(name, level, sessions.get(identity, 0), offers.stays(identity))


def _sessions(store: Store) -> Iterator[Session]:
    """Yield the sessions with exchanges. Deleted sessions have none, and no folder."""
    for number, session in store.sessions.all().items():
        if store.items.of_sessions([number]):
            yield session


def _folders(store: Store) -> set[tuple[str, str]]:
    """Return the project and the folder of every session with exchanges."""
    return {(session.project, session.cwd) for session in _sessions(store)}


def _sessions_by_identity(store: Store) -> dict[str, int]:
    """Return the number of sessions with exchanges by the identity of their project, and by its earlier one."""
    recorded, counts = store.team.folders(), dict[str, int]()
    by_folder = dict[tuple[str, str], tuple[str, str]]()
    for session in _sessions(store):
        if session.kind is SessionKind.SUBAGENT:
            continue
        folder = session.cwd, session.project
        if folder not in by_folder:
            by_folder[folder] = identities(*folder, recorded)
        for identity in {*by_folder[folder]} - {""}:
            counts[identity] = counts.get(identity, 0) + 1
    return counts
