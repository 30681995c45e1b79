"""Pixel arithmetic in native code, shared by operations, the compositor and the rasterizer."""
