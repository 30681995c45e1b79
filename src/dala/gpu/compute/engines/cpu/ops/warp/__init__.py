"""Warps on the CPU."""

import dala.gpu.compute.engines.cpu.ops.warp.warp  # noqa: F401 - registers the operations
