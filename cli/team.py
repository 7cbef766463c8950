"""`palaver team`: share with a team. The commands of its server are in `team_server`."""

import click

from .team_server import SERVER_COMMANDS


@click.group()
def team() -> None:
    """Share sessions, observations and memories with a team, on a server of your own.

    The commands serve, migrate, create, invite, people, token, revoke, clean and metrics are for the administrator of
    the server. They need the package with its extra: pip install 'palaver-archive[team]'
    """


for command in SERVER_COMMANDS:
    team.add_command(command)
