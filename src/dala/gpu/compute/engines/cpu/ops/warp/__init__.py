"""Warps on the CPU."""

from dala.gpu.compute.engines.cpu.ops.warp.warp import MAKERS as MAKERS
