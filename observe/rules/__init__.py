"""Extraction of observations by rules. It needs no API key or network access, and its results are reproducible.

An exchange yields at most five kinds of observations:

- one outcome: request, actions, conclusion
- further results: other sections of the answer
- one lesson: findings made while working
- the user's own decisions
- failed commands with the commands that worked

An exchange that changes nothing and explains nothing has no outcome.
"""

VERSION = "rules-14"
"""Version of the rules. Increase it when the result for the same exchange changes."""
