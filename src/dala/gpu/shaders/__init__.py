"""Compute on a surface: WGSL shaders and kernels that read and write its pixels."""
