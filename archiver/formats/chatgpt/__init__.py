"""ChatGPT: exports, each a zip with `conversations.json` or with several such files.

Read: prompts with the names of attachments, replies, thoughts, tool calls with results, titles, models, branches.

Not read: pictures and sound, except for type and size; hidden messages and custom instructions.

Checked against sample exports without a date. Test data: `examples/chatgpt.jsonl`; samples `chatgpt/*.json` and
`chatgpt-export.json` of polylogue.
"""
