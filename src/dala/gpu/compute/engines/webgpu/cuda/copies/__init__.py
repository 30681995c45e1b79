"""Copies between the host and the GPU: registered memory, and threads that fill it."""
