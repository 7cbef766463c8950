"""Are Historian's tools as its page has them?"""
