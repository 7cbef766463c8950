"""`palaver share`: a session as a page or as Markdown, or session cards and observations as notes of a vault."""

import hashlib
import sys
from pathlib import Path
from typing import Final

import click

from ..archiver.store.session_list import SessionFilter
from ..core.conversation import show_day
from ..core.errors import InvalidInput, PalaverError
from ..core.reports import size
from ..core.runtime import replacing
from ..core.shared_session import SharedCard, SharedSession, ShareOptions, VaultReport
from ..observe.archive import Archive
from ..observe.vault import Vault, VaultUpdate
from ..viewer.shared_html import file_name, shared_html, slug
from .demo import refuse_demo_only
from .output import as_json, is_interactive, print_json, print_message, print_page, renderer
from .project_option import archived_as, in_project
from .search import line_range

_LARGE: Final = 20_000_000
"""Minimum bytes of a page that browsers open slowly."""


@click.command()
@click.argument("session", default="", metavar="[SESSION]")
@click.argument("lines", default="", metavar="[LINES]")
@click.option(
    "--to", "target", metavar="FILE", help="File to write, or `-` for standard output (default: the title, here)."
)
@click.option("--markdown", is_flag=True, help="Write Markdown instead of an HTML page.")
@click.option(
    "--vault",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Bring the notes in DIR up to date, for Obsidian. Without SESSION, those of all sessions.",
)
@in_project
@click.option("--output", is_flag=True, help="Include the output of tools, thinking and notices.")
@click.option("--prompts-only", is_flag=True, help="Include only what you typed.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--force", is_flag=True, help="Replace an existing file, or notes that you edited.")
@as_json
def share(
    *,
    session: str,
    lines: str,
    target: str | None,
    markdown: bool,
    vault: Path | None,
    project: str | None,
    output: bool,
    prompts_only: bool,
    yes: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a session to one page that you can give to other people.

    SESSION is a session ID or its first characters, LINES is 12, 12-40 or 12-. The page is an HTML file that loads
    nothing and works without scripts. Before anything is written, the command shows what the page contains and what was
    removed, and asks.

    Secrets and private text are placeholders. Home folders are shown as `~`. Deleted lines and private projects are
    left out. Names, addresses and what pictures show are not checked.
    """
    if vault is not None and (lines or target or markdown or output or prompts_only):
        raise click.UsageError("--vault can only be combined with SESSION, --project, --yes, --force and --json.")
    if vault is None and project is not None:
        raise click.UsageError("--project needs --vault.")
    if session and project is not None:
        raise click.UsageError("SESSION and --project cannot be combined.")
    if vault is None and not session:
        raise click.UsageError("Give a SESSION, or a folder with --vault DIR.")
    if as_json and target == "-":
        raise click.UsageError("--json and --to - cannot be combined.")
    if output and prompts_only:
        raise click.UsageError("--output and --prompts-only cannot be combined.")
    archive = Archive.find()
    refuse_demo_only(archive.home, "share")
    with archive:
        if vault is not None:
            _share_vault(archive, vault, session, project, yes=yes, force=force, as_json=as_json)
            return
        first, last = line_range(lines) if lines else (None, None)
        number = archive.search.session_number(session)
        shared = archive.sharing.session(number, ShareOptions(first, last, output, prompts_only))
    page = renderer().fill("shared_session", session=shared) if markdown else shared_html(shared)
    _share_page(page, shared, target or file_name(shared, "md" if markdown else "html"), yes, force, as_json)


def _share_page(page: str, shared: SharedSession, target: str, yes: bool, force: bool, as_json: bool) -> None:
    """Show the preview, and write the page if the user agrees."""
    data = page.encode()
    if as_json:
        if yes:
            _write(data, target, force=force)
        print_json({"report": shared.report, "size": len(data), "file": target if yes else None})
        return
    preview = renderer().fill("share_preview", reports=[shared.report]).rstrip("\n")
    note = ", which browsers open slowly: choose LINES or leave out --output" if len(data) > _LARGE else ""
    preview += f"\n- Size: {size(len(data))}{note}\n"
    if target == "-":
        print_message(*preview.splitlines())
    else:
        print_page(preview)
    if not yes:
        _confirm(f"Write {target}?" if target != "-" else "Write it to standard output?")
    if target != "-" and Path(target).exists() and not force and is_interactive():
        force = click.confirm(f"{target} exists. Replace it?", abort=True)
    _write(data, target, force=force)
    if target != "-":
        print_message(f"Written: {target}")


def _write(data: bytes, target: str, *, force: bool) -> None:
    """Write a file. Raises `InvalidInput` if it exists, unless `force` is set."""
    if target == "-":
        sys.stdout.buffer.write(data)
        return
    path = Path(target)
    try:
        if force:
            with replacing(path) as file:
                file.write(data)
        else:
            with path.open("xb") as file:
                file.write(data)
    except FileExistsError:
        raise InvalidInput(f"{target} exists", hint="Add --force to replace it, or choose a name with --to.") from None
    except OSError as error:
        raise PalaverError(f"{target} cannot be written: {error.strerror}", hint="Choose a name with --to.") from None


def _share_vault(
    archive: Archive, folder: Path, session: str, project: str | None, *, yes: bool, force: bool, as_json: bool
) -> None:
    """Show the changes of a vault, and make them if the user agrees."""
    update, report = _plan(archive, folder, session, project, force=force)
    is_done = not (report.written or report.removed)
    if as_json:
        if yes:
            update.apply()
        print_json({"report": report, "folder": folder if yes else None})
        return
    print_page(renderer().fill("vault_preview", report=report))
    if is_done:
        update.apply()  # Only the list of notes can be missing.
        return
    if not yes:
        _confirm(f"Change the notes in {folder}?")
    update.apply()
    print_message(f"Notes are up to date in {folder}.")


def _plan(
    archive: Archive, folder: Path, session: str, project: str | None, *, force: bool
) -> tuple[VaultUpdate, VaultReport]:
    vault, sharing = Vault(folder, archive.sharing.archive_id), archive.sharing
    if session:
        numbers = [archive.search.session_number(session)]
    else:
        filters = SessionFilter(project=archived_as(project) if project is not None else "")
        numbers = archive.store.session_list.page(filters, archive.store.session_list.count(filters))
    scrubber, notes, private = sharing.scrubber(), dict[str, dict[str, str]](), 0
    for number in numbers:
        card = sharing.card(number, scrubber)
        if card is None:
            private += 1
        elif card.header.facts or card.observations:
            notes[card.header.id] = _notes_of(card, vault)
    update = vault.plan(notes, sharing.has, force=force)
    return update, update.report(private, scrubber.secrets, scrubber.home_paths)


def _notes_of(card: SharedCard, vault: Vault) -> dict[str, str]:
    """Return the notes of a session by name. The note of the card keeps its name when the title changes."""
    previous = (name for name in vault.names_of(card.header.id) if name.startswith("sessions/"))
    day = f"{show_day(card.header.started)} " if card.header.started is not None else ""
    identity = hashlib.sha256(card.header.id.encode()).hexdigest()[:8]  # IDs by time begin alike.
    name = next(previous, f"sessions/{day}{slug(card.header.title)} {identity}.md")
    fill = renderer().fill
    texts = {name: fill("vault_session", card=card)}
    for observation in card.observations:
        text = fill("vault_observation", shared=observation, header=card.header, session_note=name)
        texts[f"observations/{observation.id}.md"] = text
    return texts


def _confirm(question: str) -> None:
    """Ask the user. Raises `InvalidInput` without a terminal, and `Abort` if the user does not agree."""
    if not is_interactive():
        raise InvalidInput("There is no terminal to ask whether to write this", hint="Add --yes to write it.")
    click.confirm(question, abort=True)
