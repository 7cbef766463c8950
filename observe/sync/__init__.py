"""One archive on several machines, through a folder that they share.

Each device writes only below its own name: numbered, compressed and encrypted segments with its raw copies, memories
and deletions, and a signed manifest that lists them. Other devices verify the segments, store the raw copies as their
own sources, and parse and index them themselves. The database never leaves its machine.
"""
