"""Compute on a surface: shaders in WGSL, and kernel text, over the pixels that are drawn on.

A :class:`Shade` belongs to one surface and is called by its render thread, so what a shader writes
is there before the next command. WGSL runs on a WebGPU device, kernel text on the CPU engine.
"""

from __future__ import annotations

import re
import struct
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import (
    CommandError,
    DalaError,
    DeviceUnavailable,
    KernelSyntaxError,
    ShaderError,
    did_you_mean,
)
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.create import buffer_from_binary, buffer_zeros, from_dlpack
from dala.gpu.compute.kernel import Kernel, find
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.lang.source import from_text
from dala.gpu.shaders.wgsl import BLOCK, Wgsl, reflect

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.protocol import DrawCommand
    from dala.gpu.render.thread import Renderer

#: Shaders given by their source that are remembered.
KEPT: Final = 64

_WGSL: Final = re.compile(r"@\s*compute\b")
_FUNCTION: Final = re.compile(r"\bdef\s+\w+\s*\(")
#: What no name of a shader has, and every source does.
_NO_NAME: Final = re.compile(r"[(){}\n]")

#: What errors call a shader that was given by its source.
_ANONYMOUS: Final = "source"

#: How the bytes of a parameter are read.
_FORMS: Final = {"f32": "f", "f64": "d", "s32": "i", "s64": "q", "u32": "I"}


def wgsl_available() -> bool:
    """True where a WebGPU adapter, a software one too, can run WGSL shaders."""
    import dala

    try:
        return any(device.backend == "webgpu" for device in dala.devices())
    except DalaError:
        return False


class Shade:
    """The shaders and uniforms of one surface.

    Args:
        device: that WGSL runs on; the best adapter where left out.
        kernel_device: that kernel text runs on.
    """

    def __init__(self, device: str = "webgpu", kernel_device: str = "cpu") -> None:
        self._device = device
        self._kernel_device = kernel_device
        self._loaded: dict[str, Wgsl | Kernel] = {}
        self._sources: OrderedDict[str, Wgsl | Kernel] = OrderedDict()
        self._uniforms: dict[str, bytes] = {}
        #: Uniforms as storage buffers, made when first bound.
        self._stored: dict[str, Buffer] = {}
        self._pixels: Buffer | None = None
        self._before: Buffer | None = None

    def __call__(self, renderer: Renderer, command: DrawCommand) -> None:
        """Obeys load_shader, set_uniform and dispatch_compute."""
        if command.name == "load_shader":
            name = str(command.fields["name"])  # the attribute is the command's own name
            self._loaded[name] = self._make(command.source, name)
        elif command.name == "set_uniform":
            self._set(str(command.fields["name"]), command.data)
        else:
            self._dispatch(renderer, command)

    def _set(self, name: str, data: bytes) -> None:
        if not data:
            raise CommandError(f"set_uniform: {name!r} must have bytes, none came.")
        self._uniforms[name] = data
        self._stored.pop(name, None)

    # finding ----------------------------------------------------------------------------------
    def _find(self, shader: str) -> tuple[str, Wgsl | Kernel]:
        found = self._loaded.get(shader)
        if found is not None:
            return shader, found
        if _NO_NAME.search(shader) is None:
            hint = (
                did_you_mean(shader, self._loaded)
                or "load_shader(surface, name, source) loads one."
            )
            raise ShaderError(f"no shader of this name was loaded. {hint}", shader=shader)
        found = self._sources.get(shader)
        if found is None:
            found = self._sources[shader] = self._make(shader, _ANONYMOUS)
            if len(self._sources) > KEPT:
                self._sources.popitem(last=False)
        self._sources.move_to_end(shader)
        return _ANONYMOUS, found

    def _make(self, source: str, name: str) -> Wgsl | Kernel:
        if _WGSL.search(source) is not None:
            from dala.gpu.shaders.device import compile_on

            wgsl = reflect(source, name)
            compile_on(self._engine(), wgsl, name)
            return wgsl
        if _FUNCTION.search(source) is None:
            raise ShaderError(
                "its source is neither WGSL (a function with @compute) nor kernel text "
                "(def name(px: Pixel): return ...)",
                shader=name,
            )
        return _kernel(source, name)

    def _engine(self) -> WebGPUEngine:
        """The engine for WGSL; another one once a device was lost."""
        kept: Any = None if self._pixels is None else self._pixels.engine
        if kept is not None and not kept.lost:
            return kept  # type: ignore[no-any-return]
        try:
            made: Any = buffer_zeros((1,), "u8", device=self._device).engine
        except DeviceUnavailable as error:
            raise DeviceUnavailable(
                f"{error} Kernel text (def name(px: Pixel): return ...) runs without one."
            ) from None
        return made  # type: ignore[no-any-return]

    # running ----------------------------------------------------------------------------------
    def _dispatch(self, renderer: Renderer, command: DrawCommand) -> None:
        name, found = self._find(command.shader)
        if isinstance(found, Kernel):
            self._run(renderer, found, command.params)
            return
        from dala.gpu.shaders.device import Launch, launch_on

        engine = self._engine()
        canvas = renderer.canvas
        pixels = self._pixels
        if pixels is None or pixels.engine is not engine or pixels.shape != canvas.pixels.shape:
            self._pixels = None
            pixels = self._pixels = buffer_zeros(canvas.pixels.shape, "u8", device=engine.id)
        data = self._data(found, name, engine, (canvas.width, canvas.height), command.params)
        launch = Launch(name, found, pixels, data, (command.x, command.y, command.z))
        canvas.swap(launch_on(engine, launch, canvas.pixels))
        canvas.damage_all()

    def _data(
        self,
        wgsl: Wgsl,
        shader: str,
        engine: WebGPUEngine,
        size: tuple[int, int],
        params: bytes,
    ) -> dict[int, tuple[bytes | Buffer, int]]:
        from dala.gpu.shaders.device import words

        if params and not wgsl.has_block:
            raise ShaderError(
                f"{len(params)} bytes of params came, but it binds no block for them. Declare "
                "@group(0) @binding(1) var<uniform> with width, height and the params",
                shader=shader,
            )
        found: dict[int, tuple[bytes | Buffer, int]] = {}
        for binding in wgsl.bindings[1:]:
            if binding.index == BLOCK:
                found[BLOCK] = words([struct.pack("<II", *size), params])
                continue
            given = self._uniforms.get(binding.name)
            if given is None:
                raise ShaderError(
                    f"its uniform {binding.name!r} was not set. Set it first: "
                    f"set_uniform(surface, {binding.name!r}, data)",
                    shader=shader,
                )
            data, length = words([given])
            found[binding.index] = data, length
            if binding.kind != "uniform" and length <= (engine.max_buffer_bytes or 0):
                found[binding.index] = self._storage(binding.name, data, engine), length
        return found

    def _storage(self, name: str, data: bytes, engine: WebGPUEngine) -> Buffer:
        """A uniform in a buffer of its own, written once: such may be large."""
        kept = self._stored.get(name)
        if kept is None or kept.engine is not engine:
            kept = buffer_from_binary(data, (len(data),), "u8", device=engine.id)
            self._stored[name] = kept
        return kept

    def _run(self, renderer: Renderer, kernel: Kernel, params: bytes) -> None:
        values = _values(kernel, params, self._uniforms)
        canvas = renderer.canvas
        target = from_dlpack(canvas.pixels, device=self._kernel_device)
        shared = target.engine.host_view(target.storage("dispatch_compute")) is not None
        inputs = [target] * len(kernel.inputs)
        if not shared or any(a.kind == "image" for a in kernel.decl.args):
            other = self._other(target)
            if shared:  # what is read at other places must not be written meanwhile
                target.engine.copy(target.storage("copy"), other.storage("copy"))
                inputs = [other]
            else:
                target = other
        kernel.run(inputs, target, values)
        if not shared:
            canvas.swap(np.array(target.numpy()))
        canvas.damage_all()

    def _other(self, like: Buffer) -> Buffer:
        kept = self._before
        if kept is None or kept.engine is not like.engine or kept.shape != like.shape:
            self._before = None
            kept = self._before = buffer_zeros(like.shape, "u8", device=like.engine.id)
        return kept


# kernel text ----------------------------------------------------------------------------------
def _kernel(source: str, name: str) -> Kernel:
    decl = declare(from_text(source, name), lookup=_registered)
    kinds = [a.kind for a in decl.args]
    if len(kinds) > 1 or not {*kinds} <= {"pixel", "image"}:
        raise KernelSyntaxError(
            "a kernel over a surface has one input, its pixels",
            advice="Write def name(px: Pixel, *, amount=1.0) or def name(img: Image).",
            kernel=name,
            lineno=decl.function.lineno,
            column=decl.function.col_offset,
            line=decl.source.text.splitlines()[decl.function.lineno - 1],
        )
    return Kernel(name, decl)


def _registered(name: str) -> KernelDecl | None:
    found = find(name)
    return found.decl if isinstance(found, Kernel) else None


def _values(kernel: Kernel, params: bytes, uniforms: dict[str, bytes]) -> dict[str, Any]:
    """Parameters by name: the first ones from bytes, others from uniforms of their name."""
    values: dict[str, Any] = {}
    at = 0
    for p in kernel.params:
        form = _form(p)
        if at < len(params):
            if len(params) - at < form.size:
                raise _unread(kernel, params)
            values[p.name] = _unpack(p, form, params[at : at + form.size])
            at += form.size
        elif p.name in uniforms:
            data = uniforms[p.name]
            if len(data) != form.size:
                raise ShaderError(
                    f"its parameter {p.name!r} has {form.size} bytes, {len(data)} were set",
                    shader=kernel.name,
                )
            values[p.name] = _unpack(p, form, data)
    if at < len(params):
        raise _unread(kernel, params)
    return values


def _form(p: ParamDecl) -> struct.Struct:
    exact = p.exact or ("s32" if p.type in ("int", "bool") else "f32")
    return struct.Struct("<" + _FORMS[exact] * max(p.size, 1))


def _unpack(p: ParamDecl, form: struct.Struct, data: bytes) -> Any:
    items = form.unpack(data)
    if p.type == "bool":
        items = tuple(bool(i) for i in items)
    return items if p.size else items[0]


def _unread(kernel: Kernel, params: bytes) -> ShaderError:
    taken = ", ".join(f"{p.name} ({_form(p).size})" for p in kernel.params) or "none"
    return ShaderError(
        f"{len(params)} bytes of params came, which are not whole parameters. Its parameters and "
        f"their bytes, in order: {taken}",
        shader=kernel.name,
    )
