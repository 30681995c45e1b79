"""Videos in pieces: an index of key frames, parts encoded apart, and their packets in one file."""
