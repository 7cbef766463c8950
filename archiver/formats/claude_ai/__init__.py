"""Claude.ai: exports, each a zip with `conversations.json`.

Read: prompts with the names and the text of attachments, replies, thinking, tool calls with results, titles.

Not read: files, except for their names; projects and memories of the account.

Checked against sample exports without a date. Test data: `examples/claude-ai.jsonl`; samples `claude-ai/*.json` and
`claude-ai-export.json` of polylogue.
"""
