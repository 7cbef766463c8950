"""Extraction of observations by rules. It needs no API key or network access, and its results are reproducible.

An exchange yields few kinds of observations:

- an outcome: a commit, an edit or an approved plan
- otherwise a verdict: the answer to a question, a cause, or the findings of a review
- the user's own decisions
- failed commands with the commands that worked
- notes that the agent wrote for later sessions

All other exchanges have no observation and stay searchable. Each session has a card.
"""

VERSION = "rules-22"
"""Version of the rules. Increase it when the result for the same exchange changes."""
