"""Resizing on the CPU."""

from dala.gpu.compute.engines.cpu.ops.resize.resize import MAKERS as MAKERS
