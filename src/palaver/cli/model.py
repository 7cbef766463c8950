"""`palaver model`: show or change the embedding model."""

import click
from msgspec.structs import replace

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.search.model.embedder import DEFAULT_MODEL, load

from .options import as_json
from .output import print_json


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def model(ctx: click.Context, *, as_json: bool) -> None:
    """Show the embedding model, or change it with `use`."""
    if ctx.invoked_subcommand is not None:
        return
    chosen = Config.read(Home.find().config).model
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None})
    else:
        click.echo(chosen or f"{DEFAULT_MODEL} (packaged)")


@model.command("use")
@click.argument("name")
@as_json
def use_model(name: str, *, as_json: bool) -> None:
    """Change the embedding model.

    NAME is a sentence-transformers model (downloaded if necessary), the full path of a folder, or `packaged`. Run
    `palaver archive` afterwards to embed all entries. Until then, search uses the old vectors.
    """
    home = Home.find()
    chosen = None if name in {"packaged", DEFAULT_MODEL} else name
    dimension = load(chosen or DEFAULT_MODEL, download=True).dimension
    home.make()
    replace(Config.read(home.config), model=chosen).write(home.config)
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None, "dimension": dimension})
    else:
        click.echo(
            f"Using {chosen or DEFAULT_MODEL}, {dimension} dimensions. Run `palaver archive` to embed all entries."
        )
