"""The kernel language: Python functions in, typed IR out."""
