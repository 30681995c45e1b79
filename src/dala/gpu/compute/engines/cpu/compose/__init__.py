"""Compositing on the CPU: tiles shared out over threads, each drawn while it is in the cache."""
