"""What does the background archiver do, and when?"""
