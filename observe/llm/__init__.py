"""What did we learn, asked of a language model? Off until a person sets a key and a budget.

`excerpt` shortens an exchange, `request` asks about it, `provider` carries the question, `reply` reads the answer and
`proof` keeps what the source bears out.
"""
