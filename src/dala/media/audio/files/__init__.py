"""Sound in files: decoding, reading and writing."""
