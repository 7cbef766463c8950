"""Where the development sets lie: `PALAVER_SHARED`, or the folder `shared` beside the project. Tests skip without."""

import os
from pathlib import Path

SHARED = Path(os.environ.get("PALAVER_SHARED") or Path(__file__).parents[2] / "shared")
SAMPLES = SHARED / "samples"
