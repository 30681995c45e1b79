"""Bind groups, cached by the buffers they bind.

A dispatch binds its inputs, its output, and a window of the uniform buffer at a dynamic offset.
None of these depend on the shader, so kernels share bind groups.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.webgpu.pool import PoolSlot

if TYPE_CHECKING:
    import wgpu

#: The maximum number of cached bind groups.
MAX_GROUPS: Final = 512


class Bindings:
    """Layouts and bind groups of one device. For the owner's thread only."""

    def __init__(self, device: wgpu.GPUDevice, uniform: wgpu.GPUBuffer) -> None:
        self._device = device
        self._uniform = uniform
        self._layouts: dict[
            tuple[int, int, bool], tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]
        ] = {}
        self._groups: OrderedDict[tuple[int, ...], wgpu.GPUBindGroup] = OrderedDict()
        self._groups_of: dict[int, set[tuple[int, ...]]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def find(self, key: tuple[int, ...]) -> wgpu.GPUBindGroup | None:
        """Return a bind group that :meth:`make` made: by its window, and the ids of its slots.

        The windows of flagged ones are odd in keys, so that keys stay flat.
        """
        group = self._groups.get(key)
        if group is not None:
            self._groups.move_to_end(key)
        return group

    def make(self, slots: list[PoolSlot], window: int, flagged: bool = False) -> wgpu.GPUBindGroup:
        """Return a new bind group for some buffers and a window of uniform bytes.

        The output is last, or the flag after it.
        """
        key = (window + flagged, *(slot.id for slot in slots))
        resources: list[dict[str, object]] = [{"buffer": slot.native} for slot in slots]
        resources.append({"buffer": self._uniform, "offset": 0, "size": window})
        group = self._device.create_bind_group(
            layout=self.layouts(len(slots) - 1 - flagged, window, flagged)[0],
            entries=[{"binding": i, "resource": r} for i, r in enumerate(resources)],
        )
        self._groups[key] = group
        for id in key[1:]:
            self._groups_of.setdefault(id, set()).add(key)
        if len(self._groups) > MAX_GROUPS:
            self._forget(next(iter(self._groups)))
        return group

    def forget(self, slots: list[PoolSlot]) -> None:
        """Release all bind groups that use any of these buffers."""
        for slot in slots:
            for key in list(self._groups_of.get(slot.id, ())):
                self._forget(key)

    def clear(self) -> None:
        """Release everything."""
        self._layouts.clear()
        self._groups.clear()
        self._groups_of.clear()
        self._device = self._uniform = None

    def _forget(self, key: tuple[int, ...]) -> None:
        del self._groups[key]
        for id in set(key[1:]):
            keys = self._groups_of[id]
            keys.discard(key)
            if not keys:
                del self._groups_of[id]

    def layouts(
        self, inputs: int, window: int, flagged: bool
    ) -> tuple[wgpu.GPUBindGroupLayout, wgpu.GPUPipelineLayout]:
        """Return the layouts of a group and a pipeline with some inputs, and perhaps a flag."""
        found = self._layouts.get((inputs, window, flagged))
        if found is None:
            kinds: list[dict[str, object]] = [{"type": "read-only-storage"}] * inputs
            kinds += [{"type": "storage"}] * (1 + flagged)
            # With its size, or wgpu 0.31 asks for that of another pipeline with the same layout.
            kinds += [{"type": "uniform", "has_dynamic_offset": True, "min_binding_size": window}]
            group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": "COMPUTE", "buffer": kind}
                    for i, kind in enumerate(kinds)
                ]
            )
            layout = self._device.create_pipeline_layout(bind_group_layouts=[group])
            found = self._layouts[inputs, window, flagged] = group, layout
        return found
