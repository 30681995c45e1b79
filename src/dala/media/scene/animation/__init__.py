"""Animation of node properties: keyframes, easings, interpolation."""
