"""What turns text into vectors? The default model, how it is run, and how it was made."""
