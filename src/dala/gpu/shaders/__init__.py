"""Compute on a surface: shaders and kernels over the pixels that are drawn on."""
