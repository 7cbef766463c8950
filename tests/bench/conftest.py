"""The benchmarks are no part of the installed package, so their folder's place is made known here."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
