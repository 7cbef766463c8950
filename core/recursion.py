"""Recursion: the signs by which Palaver knows its own words when they come back to it in a transcript.

What it answered, asked or was asked to extract is no new knowledge: found again as such, it would crowd out what it was
made from.
"""

OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Every prompt that Palaver itself sends to a model or an agent begins with this."""
