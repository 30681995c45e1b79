"""Engines: CPU, WebGPU, the NumPy reference and the null engine, with one interface."""
