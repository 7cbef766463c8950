"""Process that converts a database, and kills itself at a step: `migration_worker.py HOME STEP`.

Without a kill, it prints the number of steps.
"""

import sys
from pathlib import Path

from palaver.archiver.store.migration import migrate
from palaver.core.home import Home

from ... import crash_injection

if __name__ == "__main__":
    home = Home(Path(sys.argv[1]))
    print(crash_injection.run_with_crash(lambda: migrate(home), int(sys.argv[2])))
