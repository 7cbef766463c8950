"""What turns text into vectors? The default model, how it is run, and how it was made."""

from pathlib import Path

FOLDER = Path(__file__).parent
