"""The WebGPU engine's own shaders for operations, a file a domain; see ``engines/operations.py``."""
