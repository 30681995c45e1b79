"""The kernel language: a front end from Python functions to typed IR."""
