"""`palaver mnemonics`: choose which memory files to trust."""

import sys
from pathlib import Path

import click

from palaver.archiver.store import Store
from palaver.core.amount import many
from palaver.core.config import Config
from palaver.core.errors import InvalidInput
from palaver.core.home import Home
from palaver.core.project import MNEMONICS, root_of
from palaver.observe.mnemonics import MnemonicsFolder, ProjectMemories
from palaver.templates.quote import line

from .options import as_json, not_empty
from .output import print_json

_SHOWN = 10
"""Maximum number of files that are listed before the confirmation."""

_folder = click.argument("path", default=".", metavar="[PATH]", callback=not_empty)


@click.group()
def mnemonics() -> None:
    """Choose which memory files to trust: `list`, `allow`, `disallow`.

    A cloned repository can contain a `.mnemonics` folder with memory files. Until you allow the folder, search and
    recall find these files, but new sessions do not start with them. Files that Palaver wrote are not affected.
    """


@mnemonics.command("list")
@as_json
def list_allowed(*, as_json: bool) -> None:
    """List the allowed folders."""
    home = Home.find()
    home.check()
    with Store.of(home) as store:
        folders = store.mnemonics.allowed()
    if as_json:
        print_json({"allowed": folders})
    elif folders:
        click.echo("\n".join(map(line, folders)))
    else:
        click.echo("No folders are allowed. To trust a project's memory files, run: palaver mnemonics allow PATH")


@mnemonics.command("allow", short_help="Trust the memory files of a project.")
@_folder
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@as_json
def allow(path: str, *, yes: bool, as_json: bool) -> None:
    """Trust the current and future memory files of the project in PATH."""
    home, folder = Home.find(), _folder_of(path)
    if not folder.path.is_dir():
        raise InvalidInput(f"No such folder: {folder.path}", hint="Give the path of a project that has memory files.")
    files = sorted(folder.scan().files)
    if not as_json:
        click.echo(f"{line(str(folder.path))} has {many(len(files), 'memory file')}:")
        for file in files[:_SHOWN]:
            click.echo(f"  {line(file)}")
        if len(files) > _SHOWN:
            click.echo(f"  and {len(files) - _SHOWN} more")
    if not yes and (as_json or not sys.stdin.isatty()):
        raise InvalidInput("The confirmation requires a terminal", hint="Run the command at a terminal, or add --yes.")
    if not (yes or click.confirm("Trust these files? Sessions in this project will start with their content.")):
        return
    home.make()
    with Store.create(home.database) as store, store.transaction():
        store.mnemonics.allow(str(folder.path))
    with ProjectMemories.open(home, folder.project, Config.read(home.config).model) as project:
        project.read_files()
    if as_json:
        print_json({"allowed": [str(folder.path)]})
        return
    click.echo(f"Allowed. To undo, run: palaver mnemonics disallow {line(str(folder.project))}")


@mnemonics.command("disallow", short_help="Stop trusting the memory files of a project.")
@_folder
@as_json
def disallow(path: str, *, as_json: bool) -> None:
    """Stop trusting the memory files of the project in PATH."""
    home = Home.find()
    home.check()
    project = _folder_of(path)
    folder = str(project.path)
    with Store.of(home) as store, store.transaction():
        known = folder in store.mnemonics.allowed()
        store.mnemonics.disallow(folder)
    if not known:
        raise InvalidInput(f"{folder} is not allowed", hint="Run `palaver mnemonics list` to see allowed folders.")
    if as_json:
        print_json({"disallowed": [folder]})
    else:
        again = f"palaver mnemonics allow {line(str(project.project))}"
        click.echo(f"No longer trusted: {line(folder)}. To trust the folder again, run: {again}")


def _folder_of(path: str) -> MnemonicsFolder:
    """Return the memory folder of the project that contains a path."""
    target = Path(path).expanduser()
    return MnemonicsFolder(root_of(target.parent if target.name == MNEMONICS else target))
