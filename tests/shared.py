"""Location of the development sets: `PALAVER_SHARED`, or the folder `shared` beside the repository."""

import os
from pathlib import Path

SHARED = Path(os.environ.get("PALAVER_SHARED") or Path(__file__).parents[2] / "shared")
SAMPLES = SHARED / "samples"
