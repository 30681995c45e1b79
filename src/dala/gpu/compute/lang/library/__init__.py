"""Larger functions of the kernel language: matrices, sampling, and the prelude."""
