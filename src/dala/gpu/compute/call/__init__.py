"""Kernel calls: check buffers and parameters, compute the geometry, make a plan.

All argument errors are raised here, before anything is written.
"""
