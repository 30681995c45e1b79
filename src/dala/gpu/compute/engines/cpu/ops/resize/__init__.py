"""Resizing on the CPU."""

import dala.gpu.compute.engines.cpu.ops.resize.runners  # noqa: F401 - registers the operations
