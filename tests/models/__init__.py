"""Does every embedding model agree with the packaged one?"""
