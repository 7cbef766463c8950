"""Process that installs or removes an entry, for tests that kill it.

    install_worker.py add|remove CLIENT N

The process is killed before its N-th change of the disk. If it makes fewer changes, it prints their number.
"""

import sys

from palaver.agents.clients.client_setup import apply, plan, plan_removal
from palaver.agents.clients.client_table import ServerEntry, find_client

from ...archiver.copies.compression_worker import change
from ...crash_injection import run_with_crash

SERVER = ServerEntry("/opt/palaver", ("mcp",), {})

if __name__ == "__main__":
    work, name, at = sys.argv[1:]
    client = find_client(name)
    planned = plan(client, SERVER) if work == "add" else plan_removal(client)
    print(run_with_crash(lambda: apply(planned), int(at), change))
