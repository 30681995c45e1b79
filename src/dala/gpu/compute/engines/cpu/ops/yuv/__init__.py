"""Conversion of 4:2:0 pictures to and from RGB on the CPU."""

import dala.gpu.compute.engines.cpu.ops.yuv.runners  # noqa: F401 - registers the operations
