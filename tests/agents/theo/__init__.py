"""Are Theo's tools as its page has them?"""
