"""The raw archive: byte-exact copies of agents' files, with checksums, compression, verification and export."""
