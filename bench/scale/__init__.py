"""Search over synthetic archives of 10^4 to 10^6 items, with each phase timed separately."""
