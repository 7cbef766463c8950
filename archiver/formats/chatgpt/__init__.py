"""The format of chatgpt."""
