"""Numbers in another shape: a copy of the bytes, as on the CPU."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.ops.arrange import MAKERS

__all__ = ["MAKERS"]
