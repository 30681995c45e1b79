"""Compositing on the CPU: tiles on threads, each drawn while it is in the cache."""
