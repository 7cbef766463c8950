"""Process that calls one Theo tool: `python -m … HOME TOOL ARGUMENTS`. It prints the reply."""

import sys
from pathlib import Path

import orjson

from palaver.agents.theo import THEO
from palaver.agents.toolset import ServerConfig
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

if __name__ == "__main__":
    home, name, arguments = sys.argv[1:]
    [tool] = [tool for tool in THEO.tools if tool.name == name]
    try:
        reply = tool.call(THEO.open(ServerConfig(Archive(Home(Path(home))), Renderer())), orjson.loads(arguments))
    except PalaverError as error:
        reply = THEO.to_error_reply(error)
    print(reply.text)
