"""ChatGPT: exports, a zip with `conversations.json` or with several such files.

Read: prompts with the names of attachments, replies, thoughts, calls of tools with results, titles, models, branches.

Lost: pictures and sound, except for type and size; hidden messages and custom instructions.

Checked against sample exports without a date. Test data: `examples/chatgpt.jsonl`; samples
`chatgpt/*.json` and `chatgpt-export.json` of polylogue.
"""
