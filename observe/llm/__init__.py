"""Extraction of observations with a language model. It is disabled until the user configures a model.

`model_extractor` selects exchanges, `excerpt` shortens them, and `extraction_request` builds the call. A `provider`
sends it: `messages_api`, `openai_api` or `agent_command`. `extraction_reply` parses the reply and verifies its facts,
and `job_results` stores the outcome.

`tool_turn` defines conversations with tools, which the same providers hold for `palaver ask`; `json_turn` is for
providers without tools. `booked_calls` books single calls, and `backoff` waits between attempts.

`session_summaries` does the same for whole sessions. Other modules support both: `ledger` enforces the budgets,
`job_queue` schedules retries, and `batch_sender` sends batches. `refused_requests` distinguishes bad requests from bad
settings. `model_judge` compares pairs of memories.
"""
