"""Raw archive: byte-exact copies of what agents wrote, with checksums, compression, verification and export."""
