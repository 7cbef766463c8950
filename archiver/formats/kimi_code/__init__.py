"""Support for Kimi Code.

Kimi Code stores journals as JSON lines in `~/.kimi-code/sessions`, one per agent of a session.

- Supported: prompts, replies, thinking, tool calls with results, compactions, undone turns, models, token usage,
  sub-agents.
- Not supported: requests to the model, tool lists, changes of settings, records of deleted sessions.
- Tested with: protocol versions 1.1 to 1.5, from descriptions. Records of token usage are unconfirmed on real files.
- Test data: `examples/kimi-code.jsonl`, and `agents/kimi/*.jsonl` of agent-sessions.
"""
