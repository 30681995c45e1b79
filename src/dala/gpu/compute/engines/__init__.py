"""Engines: the CPU, WebGPU, the NumPy reference and the null engine, under one contract."""
