"""One call of a kernel: its checks, its geometry, and a plan that can be run again."""
