"""Pipelines of kernels: stages are checked when added, fused, and run any number of times."""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.gpu.compute.pipeline.pipeline import Pipeline as Pipeline

__all__ = ["Pipeline"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, {"Pipeline": "dala.gpu.compute.pipeline.pipeline"})
