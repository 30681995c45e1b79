"""Compositing on the CPU: each tile is drawn completely while it is in the cache."""
