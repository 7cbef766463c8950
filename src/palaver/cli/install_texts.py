"""Texts that `palaver install --print` prints: entries, hooks and files, to copy by hand."""

from collections.abc import Sequence

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
    found = list[dict[str, str]]()
    for name in names:
        match name:
            case "service" if len(names) == 1 or as_json:
                service = Service.find()
                found.append({"client": name, "path": str(service.path), "text": service.text})
            case "service":
                continue
            case group if group in GROUPS and any(each.endswith(f"-{group}") for each in names):
                continue
            case _ if name in EXTRA_NAMES:
                found += [_text(each.client, each.text(), each.client.name) for each in extras([name], home)]
            case "generic":
                found.append({"client": name, "path": "", "text": snippet(find_client("cursor"), server)})
            case "docker":
                found += [_text(client, snippet(client, container), f"docker, {client.name}") for client in CLIENTS]
            case _:
                client = find_client(name)
                found.append(_text(client, snippet(client, server), name))
    if as_json:
        print_json({"texts": found})
    elif len(found) == 1:
        click.echo(found[0]["text"], nl=False)
    else:
        heads = [": ".join(filter(None, (each["client"], line(each["path"])))) for each in found]
        click.echo("\n".join(f"{head}\n{each['text']}" for head, each in zip(heads, found, strict=True)), nl=False)


def _text(client: Client, text: str, name: str) -> dict[str, str]:
    return {"client": name, "path": str(client.path), "text": text}
