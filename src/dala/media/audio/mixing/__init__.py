"""Sounds as sources of blocks, and the mixer."""
