"""Jobs over scene files: rendered in parts of time, and stitched."""
