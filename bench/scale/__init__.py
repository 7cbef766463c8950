"""How does it grow? Search over made-up archives of 10^4 to 10^6 items, each part of it measured apart."""
