"""When do transcripts change?"""
