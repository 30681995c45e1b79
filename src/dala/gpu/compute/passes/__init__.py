"""Programs: passes of kernels over named buffers, some of which last between frames."""
