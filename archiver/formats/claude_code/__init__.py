"""Claude Code: JSON lines in `~/.claude/projects`, one file per session and one per sub-agent.

Read: prompts (including queued prompts), replies, thinking, tool calls with results, compactions, recaps, shell
commands, slash commands, titles, token usage, pull requests, rewinds, forks and continued sessions.

Not read: progress, file snapshots, hook output, the program's context, redacted thinking, and most of `toolUseResult`.

Checked against versions 2.0.64 to 2.1.219 (measured); 1.x from descriptions. Test data: `examples/claude-code.jsonl`;
samples `*/claude-code/*.jsonl` of five repositories and the fixtures of claude-code-log and agent-sessions.
"""
