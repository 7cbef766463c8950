"""Process that calls memory_remember: `python -m … HOME PROJECT NAME COUNT`. It prints each path."""

import sys
from pathlib import Path

from palaver.agents.historian_tools import HISTORIAN
from palaver.agents.toolset import ServerConfig
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

if __name__ == "__main__":
    home, project, name, count = sys.argv[1:]
    [remember] = [tool for tool in HISTORIAN.tools if tool.name == "memory_remember"]
    context = HISTORIAN.open(ServerConfig(Archive(Home(Path(home))), Renderer(), (), Path(project)))
    for number in range(int(count)):
        arguments = {"title": "Same title", "content": f"Note {number} of {name}", "memoryType": "learning"}
        reply = remember.call(context, arguments).data or {}
        print(reply["filePath"], flush=True)
