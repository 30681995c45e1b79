"""The WebGPU engine's own shaders for operations, a file a domain (``engines/operations.py``)."""
