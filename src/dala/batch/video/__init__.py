"""Jobs over videos: split at key frames, filtered and encoded apart, stitched and checked."""
