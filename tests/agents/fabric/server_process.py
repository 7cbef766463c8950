"""Process with the fabric tools: `python -m … FOLDER`. It reads one call a line as JSON, and prints its reply."""

import sys
from pathlib import Path

import orjson

from palaver.agents.fabric import FABRIC
from palaver.core.errors import PalaverError

from .client import Agent

if __name__ == "__main__":
    context = Agent(Path(sys.argv[1])).context
    tools = {tool.name: tool for tool in FABRIC.tools}
    for row in sys.stdin:
        name, arguments = orjson.loads(row)
        try:
            reply = tools[name].call(context, arguments)
        except PalaverError as error:
            reply = FABRIC.to_error_reply(error)
        print(reply.text, flush=True)
