"""Extraction of observations with a language model. It is disabled until the user configures a model.

`model_extractor` sends whole sessions (`session_cards`), or on request `single_exchanges`. `excerpt` shortens them, and
`extraction_request` builds the call. A `provider` sends it: `messages_api`, `openai_api` or `agent_command`.
`session_reply` and `extraction_reply` parse the replies and verify their facts. The sessions without a card of the
current prompt are the queue, and `ledger` enforces the budgets. `trial` makes the trial call of a setup.

`tool_turn` defines conversations with tools, which the same providers hold for `palaver ask`; `json_turn` is for
providers without tools. `booked_calls` books single calls, and `backoff` waits between attempts.

`event_stream` reads replies that arrive in pieces. `model_judge` compares pairs of memories.
"""
