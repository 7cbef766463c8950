"""Support for Claude Code.

Claude Code stores JSON lines in `~/.claude/projects`, one file per session and one per sub-agent.

- Supported: prompts (including queued prompts), replies, thinking, tool calls with results, compactions, recaps, shell
  commands, slash commands, titles, token usage, pull requests, rewinds, forks, continued sessions, sub-agents (also in
  progress records of their parent) with the calls that started them, and members of agent teams.
- Not supported: progress of commands and hooks, file snapshots, hook output, context added by the program, redacted
  thinking, and most of `toolUseResult`.
- Tested with: versions 2.0.64 to 2.1.219. Support for 1.x is based on descriptions.
- Test data: `examples/claude-code.jsonl`, `*/claude-code/*.jsonl` of five repositories, and the fixtures of
  claude-code-log and agent-sessions.
"""
