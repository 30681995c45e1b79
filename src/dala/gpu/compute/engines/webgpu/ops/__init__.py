"""Operation code of the WebGPU engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.registry import Implementations

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

IMPLEMENTATIONS: Final[Implementations[WebGPUEngine]] = Implementations(__name__)
