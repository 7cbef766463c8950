"""Extraction of observations with a language model. It is disabled until the user configures a model.

`model_extractor` sends whole sessions, or single exchanges on request. `extraction_request` shortens them, builds the
call and parses its reply; `session_cards` does so for sessions, and `grounding` verifies the facts. A `provider` sends
the call: `model_servers` or `agent_command`. The sessions without a card of the current prompt are the queue, and
`ledger` enforces the budgets.

The same providers hold the conversations with tools of `palaver ask`. `model_judge` compares pairs of memories.
"""
