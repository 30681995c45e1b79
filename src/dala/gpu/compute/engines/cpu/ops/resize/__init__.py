"""Resizing on the CPU."""

import dala.gpu.compute.engines.cpu.ops.resize.resize  # noqa: F401 - registers the operations
