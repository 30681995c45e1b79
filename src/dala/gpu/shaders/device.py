"""Shaders on a WebGPU device: compiled, bound to buffers, launched over a surface's pixels.

Native objects belong to the device's owner: all of :class:`Press` runs on its thread, and what
others hold is text and buffers of their own.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dala.errors import ShaderError
from dala.gpu.shaders.wgsl import PIXELS, Wgsl, explain

if TYPE_CHECKING:
    from dala.gpu.compute.buffer import Buffer
    from dala.gpu.compute.engines.webgpu.device import NativeDevice
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Compiled shaders kept for each device.
KEPT: Final = 128
#: Little buffers kept for uniforms and blocks.
KEPT_BLOCKS: Final = 64


class Launch(NamedTuple):
    """A shader with all that it works on, the pixels' buffer first."""

    shader: str
    wgsl: Wgsl
    pixels: Buffer
    #: By binding: bytes to be written, or a buffer that holds them, and how many they are.
    data: Mapping[int, tuple[bytes | Buffer, int]]
    groups: tuple[int, int, int]


def compile_on(engine: WebGPUEngine, wgsl: Wgsl, shader: str) -> None:
    """Compiles a shader, so that launching it takes no longer than it has to.

    Raises:
        ShaderError: its compiler refuses it.
    """
    _check_bindings(engine, wgsl, shader)
    engine.owner.call(_press(engine).compile, wgsl, shader)


def launch_on(
    engine: WebGPUEngine, launch: Launch, pixels: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Runs a shader over pixels and gives them as they are then, in memory of their own."""
    _check_launch(engine, launch)
    future: Future[memoryview] = Future()
    work = _press(engine).launch
    engine.owner.promise(future, work, launch, pixels.reshape(-1).data, future)
    data = engine.owner.wait(future)
    return np.frombuffer(data, np.uint8).reshape(pixels.shape)


def _check_bindings(engine: WebGPUEngine, wgsl: Wgsl, shader: str) -> None:
    limits = engine.adapter.limits
    for kind, limit in (
        ("storage", "max-storage-buffers-per-shader-stage"),
        ("uniform", "max-uniform-buffers-per-shader-stage"),
    ):
        count = sum(kind in b.kind for b in wgsl.bindings)
        if count > limits[limit]:
            raise ShaderError(
                f"it binds {count} {kind} buffers, {engine.adapter.name} allows {limits[limit]}",
                shader=shader,
            )
    highest = wgsl.bindings[-1]
    most = limits.get("max-bindings-per-bind-group", 1000)
    if highest.index >= most:
        raise ShaderError(
            f"{highest.name} is at binding {highest.index}, {engine.adapter.name} has bindings "
            f"below {most}",
            shader=shader,
        )


def _check_launch(engine: WebGPUEngine, launch: Launch) -> None:
    limits = engine.adapter.limits
    most = limits["max-compute-workgroups-per-dimension"]
    if max(launch.groups) > most:
        raise ShaderError(
            f"{launch.groups} workgroups are asked for, {engine.adapter.name} allows {most} along "
            "each axis. Give each invocation more pixels, or fold the rest into y",
            shader=launch.shader,
        )
    for binding in launch.wgsl.bindings[1:]:
        kind = "uniform" if binding.kind == "uniform" else "storage"
        size, room = launch.data[binding.index][1], limits[f"max-{kind}-buffer-binding-size"]
        if size > room:
            raise ShaderError(
                f"{binding.name!r} has {size} bytes, {engine.adapter.name} allows {room} in a "
                f"{kind} buffer. Set fewer" + (", or use var<storage, read>" * (kind != "storage")),
                shader=launch.shader,
            )


class Press:
    """The compiled shaders of one device; for its owner's thread."""

    def __init__(self, device: NativeDevice) -> None:
        self._device = device
        self._compiled: OrderedDict[Wgsl, tuple[Any, Any]] = OrderedDict()
        self._blocks: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def compile(self, wgsl: Wgsl, shader: str) -> None:
        """Compiles a shader unless it is."""
        self._guarded(wgsl, shader, self._pipeline, wgsl)

    def launch(self, launch: Launch, data: memoryview, future: Future[memoryview]) -> None:
        """Writes pixels, runs a shader over them, and begins to read them."""
        device = self._device
        self.compile(launch.wgsl, launch.shader)
        pixels = launch.pixels.storage("dispatch_compute").handle
        device.write(pixels, data)
        self._guarded(launch.wgsl, launch.shader, self._submit, launch, pixels)
        device.read(pixels, data.nbytes, future)

    def clear(self) -> None:
        """Lets go of everything."""
        self._compiled.clear()
        self._blocks.clear()

    def _guarded(self, wgsl: Wgsl, shader: str, work: Any, *args: Any) -> None:
        import wgpu

        try:
            work(*args)
        except wgpu.GPUValidationError as error:
            said = str(error)
        else:
            return
        # Raised out here, the error holds neither the other one nor the native things it saw.
        raise explain(said, wgsl, shader)

    def _pipeline(self, wgsl: Wgsl) -> tuple[Any, Any]:
        found = self._compiled.get(wgsl)
        if found is None:
            native = self._device.native
            module = native.create_shader_module(code=wgsl.source)
            layout = native.create_bind_group_layout(
                entries=[
                    {"binding": b.index, "visibility": "COMPUTE", "buffer": {"type": b.kind}}
                    for b in wgsl.bindings
                ]
            )
            pipeline = native.create_compute_pipeline(
                layout=native.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": wgsl.entry},
            )
            found = self._compiled[wgsl] = layout, pipeline
            if len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(wgsl)
        return found

    def _submit(self, launch: Launch, pixels: Any) -> None:
        device = self._device
        native = device.native
        layout, pipeline = self._pipeline(launch.wgsl)
        bound = [(PIXELS, device.native_buffer(pixels), launch.pixels.nbytes)]
        for index, (data, size) in launch.data.items():
            if isinstance(data, bytes):
                buffer = self._block(index, len(data))
                native.queue.write_buffer(buffer, 0, data)
            else:
                buffer = device.native_buffer(data.storage("dispatch_compute").handle)
            bound.append((index, buffer, size))
        group = native.create_bind_group(
            layout=layout,
            entries=[
                {"binding": index, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for index, buffer, size in bound
            ],
        )
        # An encoder of its own: if it is refused, nobody else's work goes with it.
        encoder = native.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(*launch.groups)
        run.end()
        commands = encoder.finish()
        device.flush()
        device.done.submit(native, commands)

    def _block(self, index: int, size: int) -> Any:
        """A little buffer; the queue keeps its writes in order with the launches between them."""
        import wgpu

        found = self._blocks.get((index, size))
        if found is None:
            usage = wgpu.BufferUsage
            found = self._blocks[index, size] = self._device.native.create_buffer(
                size=size, usage=usage.UNIFORM | usage.STORAGE | usage.COPY_DST
            )
            if len(self._blocks) > KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end((index, size))
        return found


_presses: weakref.WeakKeyDictionary[WebGPUEngine, Press] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _press(engine: WebGPUEngine) -> Press:
    with _lock:
        found = _presses.get(engine)
        if found is None:
            found = _presses[engine] = Press(engine.device)
            engine.owner.call(_end_with, engine.owner, found)
        return found


def _end_with(owner: Any, press: Press) -> None:
    """Has native things let go of on their thread, before the device goes."""
    stop = owner.on_stop

    def both() -> None:
        press.clear()
        stop()

    owner.on_stop = both


def words(parts: Sequence[bytes]) -> tuple[bytes, int]:
    """Bytes one after another, filled up to whole words, which is what can be written."""
    data = b"".join(parts)
    size = -(-len(data) // 4) * 4
    return data.ljust(size, b"\0"), size
