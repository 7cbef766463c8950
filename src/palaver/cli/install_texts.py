"""Texts that `palaver install --print` prints: entries, hooks and files, to copy by hand."""

from collections.abc import Sequence
from typing import NamedTuple

import click

from palaver.agents.clients.client_setup import snippet
from palaver.agents.clients.client_table import CLIENTS, Client, find_client
from palaver.agents.clients.server_entry import ServerEntry
from palaver.core.home import Home
from palaver.templates.quote import line

from .install_extras import EXTRA_NAMES, GROUPS, extras
from .output import print_json
from .service import Service


def print_texts(
    names: Sequence[str], home: Home, server: ServerEntry, container: ServerEntry, *, as_json: bool
) -> None:
    """Print the texts of the named clients, hooks and files, and the service file if it is named."""
    found = list[_Text]()
    for name in names:
        match name:
            case "service" if len(names) == 1 or as_json:
                service = Service.find()
                found.append(_Text(name, str(service.path), service.text))
            case "service":
                continue
            case group if group in GROUPS and any(each.endswith(f"-{group}") for each in names):
                continue
            case _ if name in EXTRA_NAMES:
                shown = extras([name], home)
                found += [_of(each.client, each.text(), each.client.name, each.client.title) for each in shown]
            case "generic":
                found.append(_Text(name, "", snippet(find_client("cursor"), server)))
            case "docker":
                found += [_of(client, snippet(client, container), f"docker, {client.name}") for client in CLIENTS]
            case _:
                client = find_client(name)
                found.append(_of(client, snippet(client, server), name))
    if as_json:
        print_json({"texts": [{"client": each.client, "path": each.path, "text": each.text} for each in found]})
    elif len(found) == 1:
        click.echo(found[0].text.encode(), nl=False)  # to copy, so no line is wrapped
    else:
        heads = [": ".join(filter(None, (each.title or each.client, line(each.path)))) for each in found]
        click.echo(
            "\n".join(f"{head}\n{each.text}" for head, each in zip(heads, found, strict=True)).encode(), nl=False
        )


class _Text(NamedTuple):
    """Text to copy into a file of a client. If `title` is set, it is printed instead of `client`."""

    client: str
    path: str
    text: str
    title: str = ""


def _of(client: Client, text: str, name: str, title: str = "") -> _Text:
    return _Text(name, str(client.path), text, title)
