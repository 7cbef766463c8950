"""Document commands: `palaver index` and `documents` index files, `mnemonics` chooses trusted memory files."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from ..core.document import DocumentStats, FailedFile, IndexedDirectory, IndexedFile
from ..core.errors import DocumentNotFound, DocumentOutsideRoots, DocumentUnreadable, InvalidInput, UnsupportedDocument
from ..core.home import MNEMONICS, Home, root_of
from ..core.reports import many
from ..core.runtime import Reporter
from ..observe.archive import Archive
from ..observe.mnemonics import MnemonicsFolder, ProjectMemories
from ..search.document_library import DocumentLibrary
from ..templates.json_output import to_json
from ..templates.quote import line
from .output import as_json, not_empty, print_json, print_page, progress_bars, renderer
from .program import StopSignal

namespaced = click.option("--namespace", metavar="NAME", help="Only documents in this namespace.")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", callback=not_empty)
@click.option(
    "--namespace",
    metavar="NAME",
    help="Namespace for the indexed documents.  [default: the project of each PATH]",
)
@click.option("--flat", is_flag=True, help="Do not index subfolders.")
@click.option("--once", is_flag=True, help="Index the folders now, but do not watch them for changes.")
@as_json
def index(paths: Sequence[str], *, namespace: str | None, flat: bool, once: bool, as_json: bool) -> None:
    """Index documents and source code for search, and keep folders current.

    From then on, `palaver watch` indexes new, changed, moved and deleted files of a folder within seconds. Formats:
    Markdown, reStructuredText, Org, text, HTML, Jupyter notebooks, DOCX, PDF, and source code of 15 languages.

    `palaver search` also searches indexed documents. --project NAME restricts a search to one namespace. Unchanged
    files are skipped, changed files replaced, moved files keep their IDs, and deleted files are removed. Links, hidden
    files, files in .gitignore, installed packages, and large, generated or binary files are ignored. Secrets are
    redacted. You can interrupt the command at any time: files that were read stay searchable.
    """
    StopSignal().install()
    done, targets, wrong = IndexedDirectory(), [Path(path).expanduser() for path in paths], 0
    watched, namespaces = list[str](), list[str]()
    with _documents(targets) as documents, progress_bars() as report:
        for target in targets:
            try:
                own = documents.namespace_of(target) if namespace is None else namespace
                namespaces.append(own)
                if target.is_dir():
                    _add(done, _index_folder(documents, target, own, report, flat=flat, once=once))
                    watched += [] if once else [str(target.resolve())]
                else:
                    _add_file(done, documents.index_file(target, own))
            except DocumentUnreadable as problem:
                done.failed.append(FailedFile(target, problem.reason, problem.hint))
            except (DocumentNotFound, DocumentOutsideRoots, UnsupportedDocument) as problem:
                if len(targets) == 1:
                    raise
                wrong += 1
                reason = "it does not exist" if isinstance(problem, DocumentNotFound) else str(problem)
                done.failed.append(FailedFile(target, reason, problem.hint))
        _add(done, documents.index_queued(report))
    namespaces = list(dict.fromkeys(namespaces))
    if as_json:
        print_json({"namespace": namespaces[0] if len(namespaces) == 1 else None, **to_json(done)})
    else:
        print_page(renderer().render("indexed", indexed=done, namespaces=namespaces, watched=watched))
    if done.failed:
        sys.exit(2 if wrong == len(targets) else 1)


@click.group()
def documents() -> None:
    """Add, list and remove documents."""


documents.add_command(index, "add")


@documents.command(name="list", short_help="List indexed files.")
@as_json
def list_(*, as_json: bool) -> None:
    """List watched folders, indexed files with their number of chunks, queued files, and unreadable files."""
    with _open_existing() as library:
        stats = library.stats()
    if as_json:
        print_json(stats)
    else:
        print_page(renderer().render("documents", stats=stats))


@documents.command(short_help="Remove files or folders from the index.")
@click.argument("paths", nargs=-1, metavar="[PATH...]", callback=not_empty)
@namespaced
@as_json
def remove(paths: Sequence[str], *, namespace: str | None, as_json: bool) -> None:
    """Remove files, folders or a whole namespace from the index. The files on disk are not deleted.

    Removed folders are no longer watched. To leave out a part of a watched folder, list it in .gitignore instead.
    """
    if not paths and namespace is None:
        raise click.UsageError("Give files or folders to remove from the index, or use --namespace.")
    with _open_existing() as library:
        before = library.stats()
        if paths:
            for path in (path for path in paths if _is_indexed(before, path)):
                if (folder := library.watched_above(path, namespace)) is not None:
                    hint = f"Remove {folder}, or list the path in its .gitignore."
                    raise InvalidInput(f"{path} is in the watched folder {folder}", hint=hint)
            gone = sum(
                library.delete_file(path, namespace) + library.delete_directory(path, namespace) for path in paths
            )
        else:
            gone = library.delete_namespace(str(namespace))
        after = library.stats()
    unwatched = len(before.watched) - len(after.watched)
    if not gone and not unwatched and before.failed == after.failed:
        raise InvalidInput("No indexed document matches", hint="Run `palaver documents list` to see indexed documents.")
    if as_json:
        print_json({"deleted_chunks": gone})
    else:
        also = f" {many(unwatched, 'folder')} no longer watched." if unwatched else ""
        click.echo(f"Removed {many(gone, 'chunk')} from the index.{also} The files on disk are unchanged.")


def _is_indexed(stats: DocumentStats, path: str) -> bool:
    """Return whether a path is an indexed or unreadable file, or a folder with such files."""
    plain = Path(path).expanduser().resolve()
    return any(
        each.is_relative_to(plain) for each in (*stats.source_files, *(failure.file for failure in stats.failed))
    )


def _index_folder(
    documents: DocumentLibrary, folder: Path, namespace: str, report: Reporter, *, flat: bool, once: bool
) -> IndexedDirectory:
    """Index a folder before it is watched, so that the watcher does not index the same files at the same time."""
    try:
        return documents.index_directory(folder, namespace, recursive=not flat, async_mode=False, report=report)
    finally:
        if not once:  # After an interruption, the watcher indexes the remaining files.
            documents.watch(folder, namespace, recursive=not flat)


def _add_file(done: IndexedDirectory, indexed: IndexedFile) -> None:
    done.unchanged += indexed.unchanged
    done.indexed += not indexed.unchanged
    done.chunks += 0 if indexed.unchanged else len(indexed.chunk_ids)
    done.units += indexed.units
    done.truncated += [indexed.source_file] if indexed.truncated else []


def _add(done: IndexedDirectory, added: IndexedDirectory) -> None:
    done.indexed += added.indexed
    done.chunks += added.chunks
    done.units += added.units
    done.moved += added.moved
    done.unchanged += added.unchanged
    done.unparsed += added.unparsed
    done.skipped = dict((Counter(done.skipped) + Counter(added.skipped)).most_common())
    done.gone += added.gone
    done.queued, done.unembedded = added.queued, added.unembedded
    done.truncated += added.truncated
    done.failed += added.failed


def _documents(targets: Sequence[Path]) -> DocumentLibrary:
    """Open the document library. Paths given on the command line may always be read."""
    archive = Archive.find()
    if any(target.resolve().parent == target.resolve() for target in targets):
        raise InvalidInput("The root of the file system cannot be indexed", hint="Give a folder or a file.")
    roots = [target if target.is_dir() else target.absolute().resolve().parent for target in targets]
    return archive.documents(roots)


def _open_existing() -> DocumentLibrary:
    Home.find().check()
    return _documents([])


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
    archive = Archive.find()
    archive.home.check()
    with archive.store as store:
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
    archive, folder = Archive.find(), _folder_of(path)
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
    archive.home.make()
    with archive.memories as core:
        with core.store.transaction():
            core.store.mnemonics.allow(str(folder.path))
        ProjectMemories.of(core, folder.project).read_files()
    if as_json:
        print_json({"allowed": [str(folder.path)]})
        return
    click.echo(f"Allowed. To undo, run: palaver mnemonics disallow {line(str(folder.project))}")


@mnemonics.command("disallow", short_help="Stop trusting the memory files of a project.")
@_folder
@as_json
def disallow(path: str, *, as_json: bool) -> None:
    """Stop trusting the memory files of the project in PATH."""
    archive = Archive.find()
    archive.home.check()
    project = _folder_of(path)
    folder = str(project.path)
    with archive.store as store, store.transaction():
        allowed = folder in store.mnemonics.allowed()
        store.mnemonics.disallow(folder)
    if not allowed:
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
