"""How do transcripts come into the archive?"""
