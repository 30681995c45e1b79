"""Warps on the CPU."""

import dala.gpu.compute.engines.cpu.ops.warp.runners  # noqa: F401 - registers the operations
