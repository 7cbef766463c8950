"""Storing of extracted observations, which detects repetitions and confirmations and proposes preferences."""
