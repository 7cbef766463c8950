"""Extract observations with a language model. Disabled until the user sets a key and a budget.

`model_extractor` selects exchanges, `excerpt` shortens each, `extraction_request` builds the call, `provider` sends it,
`extraction_reply` parses the reply and verifies its facts, and `job_results` stores the outcome. `ledger` enforces the
budgets, `job_queue` retries, `batch_sender` uses the batch endpoint, and `model_judge` compares memories.
"""
