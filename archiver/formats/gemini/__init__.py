"""The format of gemini."""
