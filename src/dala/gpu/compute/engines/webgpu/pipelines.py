"""The compiled shaders of a device: the most recently used ones are kept.

A pipeline takes one to two megabytes where a processor computes. Plans of kernels hold handles, of
which there may be thousands; a shader that was dropped is compiled again when a plan needs it.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.gpu.compute.engines.webgpu.backlog import Costs
from dala.gpu.compute.engines.webgpu.bindings import Bindings
from dala.gpu.compute.engines.webgpu.calls.public import PublicCalls, ShaderChecks

if TYPE_CHECKING:
    import wgpu

#: The most pipelines that a device keeps, and the most where a processor computes.
MAX_NATIVE: Final = 1024
MAX_SOFTWARE_NATIVE: Final = 256

#: The smallest window of uniform bytes that a dispatch binds; more parameters need a larger one.
MIN_WINDOW: Final = 512

#: Enqueues work with an int on the owner's thread, also from finalizers.
Later: TypeAlias = "Callable[[Callable[[int], None], int], None]"


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class ComputePipeline:
    """A handle of a compiled shader, for use on any thread. The pipeline is released with it."""

    id: int
    source: str
    #: The number of input buffers.
    inputs: int
    #: Bytes of the uniform buffer that a dispatch binds.
    window: int
    checks: ShaderChecks
    #: Whether a flag, which shaders may set, is bound after the output.
    flagged: bool
    costs: Costs = field(default_factory=Costs)


class Pipelines:
    """The native pipelines of a device, up to ``most``. For the owner's thread only."""

    def __init__(self, calls: PublicCalls, bindings: Bindings, most: int, later: Later) -> None:
        self._calls: PublicCalls | None = calls
        self._bindings: Bindings | None = bindings
        self._most = most
        self._later = later
        self._ids = itertools.count()
        #: By the ids of handles, the most recently used last.
        self._kept: OrderedDict[int, wgpu.GPUComputePipeline] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def add(
        self,
        source: str,
        inputs: int,
        block: int,
        checks: ShaderChecks,
        flagged: bool,
        module: object = None,
    ) -> ComputePipeline:
        """Compile a shader with a number of inputs and a uniform block of ``block`` bytes.

        ``module`` is what :meth:`PublicCalls.translate` returned.
        """
        window = max(MIN_WINDOW, 1 << (block - 1).bit_length())
        made = ComputePipeline(next(self._ids), source, inputs, window, checks, flagged)
        self._compile(made, module)
        # Dispatches that are queued hold the handle, so none comes after the release.
        weakref.finalize(made, self._later, self._drop, made.id).atexit = False
        return made

    def native(self, pipeline: ComputePipeline) -> wgpu.GPUComputePipeline:
        """Return the native pipeline, compiled again if it was dropped."""
        try:
            self._kept.move_to_end(pipeline.id)
        except KeyError:
            self._compile(pipeline)
        return self._kept[pipeline.id]

    def clear(self) -> None:
        """Release everything, the device too: finalizers of handles keep this object alive."""
        self._kept.clear()
        self._calls = self._bindings = None

    def _compile(self, wanted: ComputePipeline, module: object = None) -> None:
        assert self._calls is not None
        assert self._bindings is not None
        made = self._calls.device.create_compute_pipeline(
            layout=self._bindings.layouts(wanted.inputs, wanted.window, wanted.flagged)[1],
            compute={
                "module": module or self._calls.shader_module(wanted.source, wanted.checks),
                "entry_point": "main",
            },
        )
        while len(self._kept) >= self._most:  # commands that use it keep it until they are done
            self._kept.popitem(last=False)
        self._kept[wanted.id] = made

    def _drop(self, id: int) -> None:
        self._kept.pop(id, None)
