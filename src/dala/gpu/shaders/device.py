"""Shaders on a WebGPU device: compiled, bound to buffers, and dispatched over pixels.

Native objects belong to the device's owner thread: all of :class:`ShaderCache` runs there. Other
threads hold text and buffers only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from dala import forks
from dala.budget import limit_exceeded
from dala.gpu.shaders.wgsl import PIXELS, Wgsl, explain, without_comments
from dala.typing import NDArray

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.buffer import Buffer
    from dala.gpu.compute.engines.base import Storage
    from dala.gpu.compute.engines.webgpu.device import NativeDevice
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.compute.engines.webgpu.owner import Owner
    from dala.gpu.compute.engines.webgpu.pool import DeviceBuffer

K = TypeVar("K")
V = TypeVar("V")

#: A bind group layout and the pipeline that uses it.
Compiled: TypeAlias = "tuple[wgpu.GPUBindGroupLayout, wgpu.GPUComputePipeline]"

#: Compiled shaders that are kept per device.
KEPT: Final = 128
#: Small buffers that are kept for uniforms and blocks.
KEPT_BLOCKS: Final = 64


class ShaderDispatch(NamedTuple):
    """A shader with its buffers and workgroups."""

    wgsl: Wgsl
    pixels: Buffer
    #: By binding: bytes to upload or a buffer, and their size.
    data: Mapping[int, tuple[bytes | Buffer, int]]
    groups: tuple[int, int, int]
    #: The flag of a metered shader.
    flag: Storage | None = None


def compile_on(engine: WebGPUEngine, wgsl: Wgsl) -> None:
    """Compile a shader ahead of its first dispatch.

    Raises:
        ShaderError: The compiler refuses it.
    """
    _check_bindings(engine, wgsl)
    engine.owner.call(_cache_of(engine).compile, wgsl)


def dispatch_on(engine: WebGPUEngine, dispatch: ShaderDispatch, pixels: NDArray) -> NDArray:
    """Run a shader over pixels and return the result as a new array."""
    _check_dispatch(engine, dispatch)
    wgsl, flag = dispatch.wgsl, None
    if wgsl.metered is not None:
        flag = engine.allocate(4, zero=True)
        dispatch = dispatch._replace(flag=flag)
    try:
        work = _cache_of(engine).dispatch
        future = engine.owner.promise(work, dispatch, pixels.reshape(-1).data)
        data = engine.owner.wait(future)
        if flag is not None and any(engine.download(flag)):
            raise limit_exceeded(wgsl.name, wgsl.limit)
    finally:
        if flag is not None:
            engine.release(flag)
    return np.frombuffer(data, np.uint8).reshape(pixels.shape)


def _check_bindings(engine: WebGPUEngine, wgsl: Wgsl) -> None:
    limits = engine.limits
    for kind, limit in (
        ("storage", "max-storage-buffers-per-shader-stage"),
        ("uniform", "max-uniform-buffers-per-shader-stage"),
    ):
        count = sum(kind in b.kind for b in wgsl.bindings)
        count += kind == "storage" and wgsl.metered is not None  # the flag
        if count > limits[limit]:
            raise wgsl.error(
                f"it binds {count} {kind} buffers, {engine.adapter.name} allows {limits[limit]} "
                f"({limit})"
            )
    problem = engine.memory_problem(without_comments(wgsl.source))
    if problem:
        raise wgsl.error(f"it {problem}")
    highest = wgsl.bindings[-1]
    most = limits.get("max-bindings-per-bind-group", 1000)
    if highest.index >= most:
        raise wgsl.error(
            f"{highest.name} is at binding {highest.index}, {engine.adapter.name} allows bindings "
            f"below {most}"
        )


def _check_dispatch(engine: WebGPUEngine, dispatch: ShaderDispatch) -> None:
    limits, wgsl = engine.limits, dispatch.wgsl
    most = limits["max-compute-workgroups-per-dimension"]
    if max(dispatch.groups) > most:
        raise wgsl.error(
            f"{dispatch.groups} workgroups are more than {engine.adapter.name} allows, {most} per "
            "axis. Give each invocation more pixels, or move some to another axis"
        )
    for binding in wgsl.bindings[1:]:
        kind = "uniform" if binding.kind == "uniform" else "storage"
        size, room = dispatch.data[binding.index][1], limits[f"max-{kind}-buffer-binding-size"]
        if size > room:
            raise wgsl.error(
                f"{binding.name!r} has {size} bytes, {engine.adapter.name} allows {room} in a "
                f"{kind} buffer. Set fewer" + (", or use var<storage, read>" * (kind != "storage"))
            )


class ShaderCache:
    """The compiled shaders of one device; used on its owner's thread."""

    def __init__(self, device: NativeDevice) -> None:
        self._device = device
        self._compiled: dict[Wgsl, Compiled] = {}
        self._blocks: dict[tuple[int, int], wgpu.GPUBuffer] = {}

    def compile(self, wgsl: Wgsl) -> None:
        """Compile a shader that is not compiled yet."""
        self._translate_errors(wgsl, self._pipeline, wgsl)

    def dispatch(
        self, dispatch: ShaderDispatch, data: memoryview, future: Future[memoryview]
    ) -> None:
        """Upload pixels, run a shader over them, and start the download."""
        device = self._device
        self.compile(dispatch.wgsl)
        pixels = dispatch.pixels.storage("dispatch_compute").handle
        device.write(pixels, data)
        self._translate_errors(dispatch.wgsl, self._submit, dispatch, pixels)
        device.read(pixels, 0, data.nbytes, False, future)

    def clear(self) -> None:
        """Release all native objects."""
        self._compiled.clear()
        self._blocks.clear()

    def _translate_errors(self, wgsl: Wgsl, work: Callable[..., object], *args: object) -> None:
        import wgpu

        try:
            work(*args)
        except wgpu.GPUValidationError as error:
            said = str(error)
        else:
            return
        # Raised outside the except block, the error references no native objects.
        raise explain(said, wgsl)

    def _pipeline(self, wgsl: Wgsl) -> Compiled:
        return recent(self._compiled, wgsl, KEPT, self._make_pipeline)

    def _make_pipeline(self, wgsl: Wgsl) -> Compiled:
        native = self._device.native
        module = self._module(wgsl)
        kinds = [(b.index, b.kind) for b in wgsl.bindings]
        if wgsl.metered is not None:
            kinds.append((wgsl.flag, "storage"))
        layout = native.create_bind_group_layout(
            entries=[
                {"binding": index, "visibility": "COMPUTE", "buffer": {"type": kind}}
                for index, kind in kinds
            ]
        )
        pipeline = native.create_compute_pipeline(
            layout=native.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": wgsl.entry},
        )
        return layout, pipeline

    def _module(self, wgsl: Wgsl) -> wgpu.GPUShaderModule:
        import wgpu

        native = self._device.native
        if wgsl.metered is None:
            return native.create_shader_module(code=wgsl.source)
        try:
            return native.create_shader_module(code=wgsl.metered)
        except wgpu.GPUValidationError:
            native.create_shader_module(code=wgsl.source)  # raises with the columns of the source
            raise

    def _submit(self, dispatch: ShaderDispatch, pixels: DeviceBuffer) -> None:
        device = self._device
        native = device.native
        layout, pipeline = self._pipeline(dispatch.wgsl)
        bound = [(PIXELS, device.native_buffer(pixels), dispatch.pixels.nbytes)]
        for index, (data, size) in dispatch.data.items():
            if isinstance(data, bytes):
                key = index, len(data)
                buffer = recent(self._blocks, key, KEPT_BLOCKS, self._make_block)
                native.queue.write_buffer(buffer, 0, data)
            else:
                buffer = device.native_buffer(data.storage("dispatch_compute").handle)
            bound.append((index, buffer, size))
        if dispatch.flag is not None:
            flag = device.native_buffer(dispatch.flag.handle)
            bound.append((dispatch.wgsl.flag, flag, 4))
        group = native.create_bind_group(
            layout=layout,
            entries=[
                {"binding": index, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for index, buffer, size in bound
            ],
        )
        # A separate encoder: if it is refused, no other work is lost.
        encoder = native.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(*dispatch.groups)
        run.end()
        commands = encoder.finish()
        device.flush()
        device.calls.submit(commands)

    def _make_block(self, key: tuple[int, int]) -> wgpu.GPUBuffer:
        """Return the small buffer of a binding. The queue keeps writes and dispatches in order."""
        from wgpu import BufferUsage as Usage

        usage = Usage.UNIFORM | Usage.STORAGE | Usage.COPY_DST
        return self._device.native.create_buffer(size=key[1], usage=usage)


def recent(kept: dict[K, V], key: K, most: int, make: Callable[[K], V]) -> V:
    """Return a kept value, or a new one. The least recently used is dropped if there are too many.

    >>> kept = {}
    >>> [recent(kept, n, 2, str) for n in (1, 2, 1, 3)], kept
    (['1', '2', '1', '3'], {1: '1', 3: '3'})
    """
    kept[key] = kept.pop(key) if key in kept else make(key)
    if len(kept) > most:
        del kept[next(iter(kept))]
    return kept[key]


_caches: weakref.WeakKeyDictionary[WebGPUEngine, ShaderCache] = weakref.WeakKeyDictionary()
_lock = forks.lock()


def _cache_of(engine: WebGPUEngine) -> ShaderCache:
    with _lock:
        found = _caches.get(engine)
        if found is None:
            found = _caches[engine] = ShaderCache(engine.device)
            engine.owner.call(_clear_on_stop, engine.owner, found)
        return found


def _clear_on_stop(owner: Owner, cache: ShaderCache) -> None:
    """Release native objects on the owner's thread before the device is closed."""
    stop = owner.on_stop

    def stop_both() -> None:
        cache.clear()
        stop()

    owner.on_stop = stop_both


def padded_words(parts: Sequence[bytes]) -> tuple[bytes, int]:
    """Join bytes and pad them to whole 32-bit padded_words. Return them and their size."""
    data = b"".join(parts)
    size = -(-len(data) // 4) * 4
    return data.ljust(size, b"\0"), size
