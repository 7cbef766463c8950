"""The format of codex."""
