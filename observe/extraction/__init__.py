"""Storage of extracted observations: repetitions, confirmations and proposed preferences."""
