"""Compute commands of a surface: WGSL shaders and kernel text over its pixels.

A :class:`SurfaceShaders` belongs to one surface and runs on its render thread, so a shader has
finished before the next command. WGSL runs on a WebGPU device, kernel text on the CPU engine.
"""

from __future__ import annotations

import ast
import copy
import re
import struct
from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from dala.budget import Limits
from dala.errors import (
    CommandError,
    DalaError,
    DeviceUnavailable,
    KernelSyntaxError,
    ShaderError,
    did_you_mean,
)
from dala.gpu.command import encode_dispatch_compute
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.instant import Instant
from dala.gpu.compute.create import buffer_from_binary, buffer_zeros, from_dlpack
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl
from dala.gpu.compute.lang.source import from_text
from dala.gpu.compute.params import check_params
from dala.gpu.compute.passes.program import KernelProgram
from dala.gpu.compute.passes.source import Shader, shader_from
from dala.gpu.compute.runnable import Runnable
from dala.gpu.protocol import BytesLike, as_bytes
from dala.gpu.shaders.block import pack_block
from dala.gpu.shaders.device import (
    ShaderDispatch,
    compile_on,
    dispatch_on,
    padded_words,
    recent,
)
from dala.gpu.shaders.wgsl import BLOCK, Wgsl, reflect
from dala.typing import Params, ParamValue

if TYPE_CHECKING:
    from dala.gpu.compute.engines.base import Engine
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.compute.passes.state import ProgramState
    from dala.gpu.protocol import DrawCommand
    from dala.gpu.render.thread import Renderer

#: Iterations of a shader's loops at one position, for surfaces that were created without
#: ``dala.limits``. Kernel text on the CPU has a time only.
MAX_ITERATIONS: Final = 10_000_000

#: The number of shaders given by source that are kept, and of programs with what they remember.
KEPT: Final = 64
KEPT_STATES: Final = 8

_WGSL: Final = re.compile(r"@\s*compute\b")
_FUNCTION: Final = re.compile(r"\bdef\s+\w+\s*\(")
#: Characters that every source has, and no name of a shader.
_SOURCE_ONLY: Final = re.compile(r"[(){}\n]")

#: The name in errors of a shader given by its source.
_ANONYMOUS: Final = "source"

#: The struct formats of parameters.
_FORMATS: Final = {"f32": "f", "f64": "d", "s32": "i", "s64": "q", "u32": "I"}


def wgsl_available() -> bool:
    """Return True if a WebGPU adapter, including a software one, can run WGSL shaders."""
    import dala

    try:
        return any(device.backend == "webgpu" for device in dala.devices())
    except DalaError:
        return False


def post_dispatch(
    renderer: Renderer,
    shader: str | Shader,
    params: BytesLike | Params,
    workgroups: tuple[int, int, int],
) -> None:
    """Queue a dispatch that is no command of the protocol: of a kernel, or with a dict."""
    call = "dispatch_compute"
    if not isinstance(shader, str | Kernel | KernelProgram):
        advice = "Operations such as resize run with run_to_surface(...)."
        advice = advice if isinstance(shader, Runnable) else ""
        raise CommandError.invalid(call, "shader", "a Kernel or a str", shader, advice)
    if not isinstance(shader, str) and not _takes_pixels(shader):
        raise CommandError.invalid(
            call, "shader", "a kernel with one input, px: Pixel or img: Image", shader
        )
    groups = encode_dispatch_compute("", b"", workgroups)[-12:]
    x, y, z = struct.unpack("<III", groups)
    given: bytes | Params
    if isinstance(params, Mapping):
        if not isinstance(shader, str):
            check_params(shader.name, params, [p.name for p in shader.params])
        given = copy.deepcopy(dict(params))  # the caller may change its own meanwhile
    else:
        given = as_bytes(call, "params", params)
    renderer.post(lambda: renderer.compute().dispatch(renderer, shader, given, (x, y, z)))


class SurfaceShaders:
    """The shaders and uniforms of one surface.

    Args:
        device: The device that WGSL runs on; by default the best adapter.
        kernel_device: The device that kernel text runs on.
    """

    def __init__(self, device: str = "webgpu", kernel_device: str = "cpu") -> None:
        self._device = device
        self._kernel_device = kernel_device
        self._loaded: dict[str, Wgsl | Shader] = {}
        self._sources: dict[str, Wgsl | Shader] = {}
        #: Programs that ran, with the frames that they remember.
        self._states: dict[KernelProgram, ProgramState] = {}
        self._uniforms: dict[str, bytes] = {}
        #: Uniforms as storage buffers, created when they are first bound.
        self._stored: dict[str, Buffer] = {}
        #: When shaders began, and how many have run: the time and frame of kernels.
        self._begin = perf_counter()
        self._frame = 0
        self._pixels: Buffer | None = None
        self._copy: Buffer | None = None

    def __call__(self, renderer: Renderer, command: DrawCommand) -> None:
        """Execute a load_shader, set_uniform or dispatch_compute command."""
        if command.name == "load_shader":
            name = str(command.fields["name"])  # the attribute is the command's own name
            self._loaded[name] = self._make(command.source, renderer.limits, name)
        elif command.name == "set_uniform":
            self._set(str(command.fields["name"]), command.data)
        else:
            groups = (command.x, command.y, command.z)
            self.dispatch(renderer, command.shader, command.params, groups)

    def _set(self, name: str, data: bytes) -> None:
        if not data:
            raise CommandError.invalid(
                "set_uniform", "data", "at least one byte", data, f"It is the uniform {name!r}."
            )
        self._uniforms[name] = data
        self._stored.pop(name, None)

    # finding ----------------------------------------------------------------------------------
    def _find(self, shader: str | Shader, limits: Limits) -> Wgsl | Shader:
        if not isinstance(shader, str):
            return shader
        found = self._loaded.get(shader)
        if found is not None:
            return found
        if _SOURCE_ONLY.search(shader) is None:
            hint = (
                did_you_mean(shader, self._loaded)
                or "load_shader(surface, name, source) loads one."
            )
            raise ShaderError(f"no shader with this name is loaded. {hint}", shader=shader)
        return recent(self._sources, shader, KEPT, lambda source: self._make(source, limits))

    def _make(self, source: str, limits: Limits, name: str = _ANONYMOUS) -> Wgsl | Shader:
        if _WGSL.search(source) is not None:
            limit = limits.iterations or MAX_ITERATIONS
            wgsl = reflect(source, name, limit)
            early = self._engine().loops_end_early if wgsl.metered is not None else 0
            if early:  # the adapter would end the loops silently, a little later
                wgsl = reflect(source, name, min(limit, early - early // 16))
            compile_on(self._engine(), wgsl)
            return wgsl
        if _FUNCTION.search(source) is None:
            raise ShaderError(
                "the source is neither WGSL (a function with @compute) nor kernel text "
                "(def name(px: Pixel): return ...)",
                shader=name,
            )
        return _kernel(source, name)

    def _engine(self) -> WebGPUEngine:
        """Return the engine for WGSL; a new one after a device loss."""
        if self._pixels is not None:
            kept = cast("WebGPUEngine", self._pixels.engine)
            if not kept.lost:
                return kept
        try:
            engine = buffer_zeros((1,), "u8", device=self._device).engine
            if engine.info()["api"] == "CUDA":  # which runs the WGSL that Dala writes
                engine = buffer_zeros((1,), "u8", device="webgpu").engine
        except DeviceUnavailable as error:
            raise DeviceUnavailable(
                f"{error} Kernel text (def name(px: Pixel): return ...) runs without one."
            ) from None
        return cast("WebGPUEngine", engine)

    # running ----------------------------------------------------------------------------------
    def dispatch(
        self,
        renderer: Renderer,
        shader: str | Shader,
        params: bytes | Params,
        groups: tuple[int, int, int],
    ) -> None:
        """Run a kernel, or a shader given by name or source, over the pixels."""
        with renderer.limited():
            found = self._find(shader, renderer.limits)
            if isinstance(found, Wgsl):
                self._run_wgsl(renderer, found, params, groups)
            else:
                self._run(renderer, found, params)
                self._frame += 1

    def _run_wgsl(
        self,
        renderer: Renderer,
        found: Wgsl,
        params: bytes | Params,
        groups: tuple[int, int, int],
    ) -> None:
        if isinstance(params, Mapping):
            params = pack_block(found, params)
        engine = self._engine()
        canvas = renderer.canvas
        kept, self._pixels = self._pixels, None
        pixels = self._pixels = _like(kept, canvas.pixels.shape, engine)
        data = self._data(found, engine, (canvas.width, canvas.height), params)
        dispatch = ShaderDispatch(found, pixels, data, groups)
        canvas.swap(dispatch_on(engine, dispatch, canvas.pixels))
        canvas.damage_all()

    def _data(
        self, wgsl: Wgsl, engine: WebGPUEngine, size: tuple[int, int], params: bytes
    ) -> dict[int, tuple[bytes | Buffer, int]]:
        wgsl.block(f"{len(params)} bytes of params" if params else "")
        found: dict[int, tuple[bytes | Buffer, int]] = {}
        for binding in wgsl.bindings[1:]:
            if binding.index == BLOCK:
                found[BLOCK] = padded_words([struct.pack("<II", *size), params])
                continue
            given = self._uniforms.get(binding.name)
            if given is None:
                raise wgsl.error(
                    f"the uniform {binding.name!r} is not set. Set it first: "
                    f"set_uniform(surface, {binding.name!r}, data)"
                )
            data, length = padded_words([given])
            found[binding.index] = data, length
            if binding.kind != "uniform" and length <= engine.max_buffer_bytes:
                found[binding.index] = self._storage(binding.name, data, engine), length
        return found

    def _storage(self, name: str, data: bytes, engine: WebGPUEngine) -> Buffer:
        """Return a uniform as a storage buffer, which is uploaded once: it may be large."""
        kept = self._stored.get(name)
        if kept is None or kept.engine is not engine:
            kept = buffer_from_binary(data, (len(data),), "u8", device=engine.id)
            self._stored[name] = kept
        return kept

    def _run(self, renderer: Renderer, kernel: Shader, params: bytes | Params) -> None:
        canvas, inbox = renderer.canvas, renderer.inbox()
        moment = Instant(perf_counter() - self._begin, self._frame)
        if inbox is not None:
            x, y, buttons = inbox.pointer(canvas.width, canvas.height)
            moment = moment._replace(pointer=(x, y, float(bool(buttons))))
        values = _values(kernel, params, self._uniforms)
        target = from_dlpack(canvas.pixels, device=self._kernel_device)
        shared = target.engine.host_view(target.storage("dispatch_compute")) is not None
        inputs = [target] * len(kernel.inputs)
        other: Buffer | None = None
        if not shared or isinstance(kernel, KernelProgram) or _reads_others(kernel.decl):
            kept, self._copy = self._copy, None
            other = self._copy = _like(kept, target.shape, target.engine)
            if shared:  # pixels that are read at offsets must not be written meanwhile
                target.engine.copy(target.storage("copy"), other.storage("copy"))
                inputs = [other] * len(kernel.inputs)
            else:
                target = other
        try:
            if isinstance(kernel, Kernel):
                kernel.run(inputs, target, moment.given(kernel) | values)
            else:
                state = recent(self._states, kernel, KEPT_STATES, partial(_started, target))
                state.run(inputs, target, values, moment)
        except BaseException:
            if shared and other is not None:  # it may have been ended in the middle
                target.engine.copy(other.storage("copy"), target.storage("copy"))
            raise
        if not shared:
            canvas.swap(np.array(target.numpy()))
        canvas.damage_all()


def _like(kept: Buffer | None, shape: tuple[int, ...], engine: Engine) -> Buffer:
    """Return a kept buffer of pixels if it has the shape and engine, else a new one."""
    if kept is not None and kept.engine is engine and kept.shape == shape:
        return kept
    del kept  # before the new one is allocated
    return buffer_zeros(shape, "u8", device=engine.id)


# kernel text ----------------------------------------------------------------------------------
def _kernel(source: str, name: str) -> Shader:
    made = shader_from(from_text(source, name))
    if not _takes_pixels(made):
        decl = made.decl if isinstance(made, Kernel) else made.passes[0].kernel.decl
        raise KernelSyntaxError(
            "a kernel on a surface has one input, the pixels",
            advice="Write def name(px: Pixel, *, amount=1.0) or def name(img: Image).",
            kernel=name,
            lineno=decl.function.lineno,
            column=decl.function.col_offset,
            line=decl.source.text.splitlines()[decl.function.lineno - 1],
        )
    return made


def _takes_pixels(kernel: Shader) -> bool:
    """Return True if the only input of a kernel, if any, is a picture."""
    return len(kernel.inputs) <= 1 and kernel.pictures.issuperset(kernel.inputs)


def _started(target: Buffer, program: KernelProgram) -> ProgramState:
    height, width = target.shape[:2]
    return program.start(width, height, device=target.device)


def _reads_others(decl: KernelDecl) -> bool:
    """Return True if a kernel reads pixels beside its own, or may be ended in the middle."""
    looping = any(isinstance(s, ast.For | ast.While) for s in ast.walk(decl.function))
    return looping or any(a.kind == "image" for a in decl.args)


def _values(
    kernel: Shader, params: bytes | Params, uniforms: dict[str, bytes]
) -> dict[str, ParamValue]:
    """Return the parameters by name: the first from ``params``, others from uniforms."""
    values: dict[str, ParamValue] = {}
    if isinstance(params, Mapping):
        check_params(kernel.name, params, [p.name for p in kernel.params])
        values, params = dict(params), b""
    at = 0
    for p in kernel.params:
        if p.name in values or p.role:
            continue
        packer = _struct_of(p)
        if at < len(params):
            if len(params) - at < packer.size:
                raise _wrong_params(kernel, params)
            values[p.name] = _unpack(p, packer, params[at : at + packer.size])
            at += packer.size
        elif p.name in uniforms:
            data = uniforms[p.name]
            if len(data) != packer.size:
                raise ShaderError(
                    f"the parameter {p.name!r} must have {packer.size} bytes, got {len(data)}",
                    shader=kernel.name,
                )
            values[p.name] = _unpack(p, packer, data)
    if at < len(params):
        raise _wrong_params(kernel, params)
    return values


def _struct_of(p: ParamDecl) -> struct.Struct:
    exact = p.exact or ("s32" if p.type in ("int", "bool") else "f32")
    return struct.Struct("<" + _FORMATS[exact] * max(p.size, 1))


def _unpack(p: ParamDecl, packer: struct.Struct, data: bytes) -> ParamValue:
    items = packer.unpack(data)
    if p.type == "bool":
        items = tuple(bool(i) for i in items)
    return items if p.size else items[0]


def _wrong_params(kernel: Shader, params: bytes) -> ShaderError:
    taken = ", ".join(f"{p.name} ({_struct_of(p).size})" for p in kernel.params) or "none"
    return ShaderError(
        f"got {len(params)} bytes of params, which is not a whole number of parameters. The "
        f"parameters and their bytes, in order: {taken}",
        shader=kernel.name,
    )
